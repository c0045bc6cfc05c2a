import { render } from "preact";

import { App } from "./app.tsx";
import "uplot/dist/uPlot.min.css";
import "./style.css";

const root = document.getElementById("app");
if (root) {
  root.replaceChildren();
  render(<App />, root);
}

if (import.meta.env.PROD && "serviceWorker" in navigator) {
  // Without one the page works too, only not offline.
  navigator.serviceWorker.register("./sw.js").catch(() => undefined);
}
