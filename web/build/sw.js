// Keeps the files of one build: the page works offline, and a new build replaces all of them at once.
const CACHE = "ackclock-VERSION";
const files = "FILES";

self.addEventListener("install", (event) => {
  // `reload`: the browser's own cache may hold a page of the last build.
  const requests = files.map((file) => new Request(file, { cache: "reload" }));
  event.waitUntil(caches.open(CACHE).then((cache) => cache.addAll(requests)).then(() => self.skipWaiting()));
});

self.addEventListener("activate", (event) => {
  const old = (name) => name.startsWith("ackclock-") && name !== CACHE;
  const remove = (names) => Promise.all(names.filter(old).map((name) => caches.delete(name)));
  event.waitUntil(caches.keys().then(remove).then(() => self.clients.claim()));
});

self.addEventListener("fetch", (event) => {
  if (event.request.method !== "GET") return;
  const kept = (cache, request) => cache.match(request, { ignoreSearch: true, ignoreVary: true });
  // Any other address is the page's.
  const page = (cache) => (event.request.mode === "navigate" ? kept(cache, "./") : undefined);
  const found = caches.open(CACHE).then(async (cache) => (await kept(cache, event.request)) ?? page(cache));
  event.respondWith(found.then((response) => response ?? fetch(event.request)));
});
