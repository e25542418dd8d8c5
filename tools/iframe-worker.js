// Browsers start no worker for a page that was opened from a disk. Search then runs in a hidden frame instead.
class FrameWorker extends EventTarget {
  constructor(url) {
    super();
    this.frame = document.createElement("iframe");
    this.frame.hidden = true;
    document.documentElement.append(this.frame);
    this.inside = this.frame.contentWindow;
    this.inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
    this.inside.importScripts = async (...urls) => { for (const each of urls) await this.load(each); };
    this.loaded = this.load(url);
  }

  load(url) {
    const page = this.inside.document, script = page.createElement("script");
    script.src = new URL(url, document.baseURI);
    return new Promise((done, failed) => {
      script.onload = done;
      script.onerror = () => failed(new Error(`${script.src} cannot be loaded`));
      page.documentElement.append(script);
    });
  }

  async postMessage(data) {
    await this.loaded;
    this.inside.dispatchEvent(new this.inside.MessageEvent("message", { data }));
  }

  terminate() {
    this.frame.remove();
  }
}

// The search of the theme looks for this name.
if (location.protocol === "file:") window.Worker = window.IFrameWorker = FrameWorker;
