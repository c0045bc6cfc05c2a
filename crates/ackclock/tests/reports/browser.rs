//! A browser without a screen, driven by the Chrome DevTools Protocol over its own input and
//! output (`--remote-debugging-pipe`): JSON texts, each with a zero byte at its end.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use base64::Engine;
use serde_json::{Value, json};

/// Time limit of a page.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A browser with one page.
pub(crate) struct Browser {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    session: String,
    number: u64,
    /// Errors of the page and URLs it requested, since they were last taken.
    errors: Vec<String>,
    asked: Vec<String>,
}

/// The first browser found; `None`, with a message, if there is none, which must not happen in CI.
#[expect(clippy::disallowed_methods, reason = "whether a skipped test is a failure depends on CI")]
#[expect(clippy::print_stderr, reason = "a skipped test must say so")]
fn installed() -> Option<&'static str> {
    let found = ["chromium", "chromium-browser", "google-chrome"].into_iter().find(|name| {
        let asked = Command::new(name).arg("--version").stderr(Stdio::null()).output();
        asked.is_ok_and(|answer| answer.status.success())
    });
    if found.is_none() {
        let in_ci = std::env::var("CI").is_ok_and(|value| value == "true");
        assert!(!in_ci, "chromium not found, and CI=true allows no skipped test");
        eprintln!("skipped: chromium not found, install it to run this test");
    }
    found
}

impl Browser {
    /// Starts a browser with its files in `home`; `None` if none is installed.
    pub(crate) fn start(home: &Path) -> Option<Self> {
        let name = installed()?;
        // The browser reads from descriptor 3 and writes to 4.
        let script = format!(
            "exec {name} --headless --no-sandbox --disable-gpu --hide-scrollbars --no-first-run \
             --disable-dev-shm-usage --user-data-dir=\"$1\" --remote-debugging-pipe 3<&0 4>&1 \
             >/dev/null 2>&1"
        );
        let mut child = Command::new("sh")
            .args(["-c", &script, "sh"])
            .arg(home.join("browser"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let to = child.stdin.take().unwrap();
        let from = BufReader::new(child.stdout.take().unwrap());
        let mut browser = Self {
            child,
            to,
            from,
            session: String::new(),
            number: 0,
            errors: Vec::new(),
            asked: Vec::new(),
        };
        let target = browser.call("Target.createTarget", &json!({ "url": "about:blank" }));
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        let session = browser.call("Target.attachToTarget", &attach);
        browser.session = session["sessionId"].as_str().unwrap().to_owned();
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.call(&format!("{domain}.enable"), &json!({}));
        }
        Some(browser)
    }

    fn call(&mut self, method: &str, parameters: &Value) -> Value {
        self.number += 1;
        let mut message = json!({ "id": self.number, "method": method, "params": parameters });
        if !self.session.is_empty() {
            message["sessionId"] = json!(self.session);
        }
        self.to.write_all(message.to_string().as_bytes()).unwrap();
        self.to.write_all(&[0]).unwrap();
        self.to.flush().unwrap();
        loop {
            let message = self.next();
            if message["id"] == self.number {
                assert!(message["error"].is_null(), "{method}: {}", message["error"]);
                return message["result"].clone();
            }
            self.record_event(&message);
        }
    }

    fn next(&mut self) -> Value {
        let mut text = Vec::new();
        let length = self.from.read_until(0, &mut text).unwrap();
        assert!(length > 0, "the browser has gone");
        text.pop();
        serde_json::from_slice(&text).unwrap()
    }

    /// Collects errors and network requests from events.
    fn record_event(&mut self, event: &Value) {
        let printed = &event["params"];
        match event["method"].as_str().unwrap_or_default() {
            "Runtime.exceptionThrown" => self.errors.push(printed.to_string()),
            "Runtime.consoleAPICalled"
                if printed["type"] == "error" || printed["type"] == "warning" =>
            {
                self.errors.push(printed.to_string());
            }
            "Log.entryAdded" if printed["entry"]["level"] == "error" => {
                self.errors.push(printed.to_string());
            }
            "Network.requestWillBeSent" => {
                self.asked.push(printed["request"]["url"].as_str().unwrap_or_default().to_owned());
            }
            _ => {}
        }
    }

    /// Opens a file on a screen of this size and waits until its plots are drawn.
    pub(crate) fn open(&mut self, file: &Path, (width, height): (u32, u32), is_dark: bool) {
        let is_phone = width < 600;
        let screen = json!({
            "width": width, "height": height, "deviceScaleFactor": if is_phone { 2 } else { 1 },
            "mobile": is_phone,
        });
        self.call("Emulation.setDeviceMetricsOverride", &screen);
        let scheme = if is_dark { "dark" } else { "light" };
        let media = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        self.call("Emulation.setEmulatedMedia", &media);
        let address = format!("file://{}", file.display());
        self.call("Page.navigate", &json!({ "url": address }));
        self.wait_for("document.documentElement?.dataset.ready > 0");
        let foreign = |asked: &&String| {
            **asked != address && !asked.starts_with("data:") && *asked != "about:blank"
        };
        let asked = std::mem::take(&mut self.asked);
        assert_eq!(asked.iter().find(foreign), None, "the page fetches something");
    }

    /// The value of an expression.
    pub(crate) fn value(&mut self, expression: &str) -> Value {
        let asked =
            json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let answer = self.call("Runtime.evaluate", &asked);
        assert!(answer["exceptionDetails"].is_null(), "{expression}: {answer}");
        answer["result"]["value"].clone()
    }

    pub(crate) fn text(&mut self, expression: &str) -> String {
        self.value(expression).as_str().unwrap_or_default().to_owned()
    }

    pub(crate) fn number(&mut self, expression: &str) -> f64 {
        self.value(expression).as_f64().unwrap()
    }

    #[expect(clippy::disallowed_methods, reason = "how long a browser takes is wall-clock time")]
    pub(crate) fn wait_for(&mut self, expression: &str) {
        let since = Instant::now();
        while self.value(expression) != json!(true) {
            assert!(since.elapsed() < TIMEOUT, "waited for {expression}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits two frames, after which pending changes are drawn.
    pub(crate) fn settle(&mut self) {
        let frames = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))";
        self.value(frames);
    }

    pub(crate) fn mouse(&mut self, kind: &str, (x, y): (f64, f64), more: &Value) {
        let mut event = json!({ "type": kind, "x": x, "y": y });
        for (key, value) in more.as_object().into_iter().flatten() {
            event[key] = value.clone();
        }
        self.call("Input.dispatchMouseEvent", &event);
    }

    pub(crate) fn drag(&mut self, from: (f64, f64), to: (f64, f64)) {
        let held = json!({ "button": "left", "buttons": 1, "clickCount": 1 });
        self.mouse("mousePressed", from, &held);
        self.mouse("mouseMoved", ((from.0 + to.0) / 2.0, to.1), &held);
        self.mouse("mouseMoved", to, &held);
        self.mouse("mouseReleased", to, &held);
        self.settle();
    }

    pub(crate) fn key(&mut self, key: &str, more: &Value) {
        for kind in ["keyDown", "keyUp"] {
            let mut event = json!({ "type": kind, "key": key });
            for (name, value) in more.as_object().into_iter().flatten() {
                event[name] = value.clone();
            }
            self.call("Input.dispatchKeyEvent", &event);
        }
        self.settle();
    }

    /// Takes the console errors since the last call.
    pub(crate) fn errors(&mut self) -> Vec<String> {
        // A reply comes after all earlier events.
        self.value("0");
        std::mem::take(&mut self.errors)
    }

    /// A screenshot as PNG, of the screen or of the whole page.
    pub(crate) fn picture(&mut self, is_rate_based: bool) -> Vec<u8> {
        let asked = json!({ "format": "png", "captureBeyondViewport": is_rate_based });
        let mut asked = asked;
        if is_rate_based {
            let size = self.call("Page.getLayoutMetrics", &json!({}))["cssContentSize"].clone();
            let height = size["height"].as_f64().unwrap().min(6_000.0);
            asked["clip"] = json!({
                "x": 0, "y": 0, "width": size["width"], "height": height, "scale": 1,
            });
        }
        let shot = self.call("Page.captureScreenshot", &asked);
        base64::engine::general_purpose::STANDARD.decode(shot["data"].as_str().unwrap()).unwrap()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
