// From disk (file://) browsers refuse workers, and the search is one: run it in a hidden frame.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      const inside = frame.contentWindow;
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      inside.importScripts = (...urls) => Promise.all(urls.map((each) => this.load(inside, each)));
      this.frame = inside;
      this.ready = this.load(inside, url);
    }

    load(inside, url) {
      return new Promise((done, failed) => {
        const script = inside.document.createElement("script");
        script.src = url;
        script.onload = done;
        script.onerror = failed;
        inside.document.body.append(script);
      });
    }

    postMessage(data) {
      this.ready.then(() =>
        this.frame.dispatchEvent(new this.frame.MessageEvent("message", { data })),
      );
    }
  };
}
