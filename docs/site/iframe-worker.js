// Lets the search run where the pages are opened from a folder. Browsers start no workers there, so the script of the
// worker runs in an empty frame, with what it expects around itself. Served pages keep their real workers.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    #frame = document.createElement("iframe");
    #ready;

    constructor(url) {
      super();
      this.#frame.hidden = true;
      document.body.append(this.#frame);
      const { contentWindow, contentDocument } = this.#frame;
      contentWindow.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      contentWindow.importScripts = (...urls) => Promise.all(urls.map((each) => this.#load(contentDocument, each)));
      contentWindow.__index = window.__index;
      this.#ready = this.#load(contentDocument, String(url));
    }

    #load(inside, src) {
      return new Promise((resolve, reject) => {
        const script = Object.assign(inside.createElement("script"), { src, onload: resolve, onerror: reject });
        inside.head.append(script);
      });
    }

    postMessage(data) {
      this.#ready.then(() => this.#frame.contentWindow.dispatchEvent(new MessageEvent("message", { data })));
    }

    terminate() {
      this.#frame.remove();
    }
  };
}
