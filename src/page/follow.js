// The event stream, by fetch: an EventSource could not send a credential. Comes back by itself, without missing anything, and
// stands aside when there is more than a person could read. A page that nobody sees lets go of it: a browser has six
// connections to a server, for all its tabs.

import {seen} from '/page/dom.js';

const SILENCE = 25000;      // ms; the server says something every 10 s
const TOO_MANY = 400;       // events a second, for two seconds: polling shows as much
const STAND_ASIDE = 10000;  // ms, until the next look at how much there is
const HIDDEN = 10000;       // ms, until a page that nobody sees lets go
const FIRST_PAUSE = 400, LONGEST_PAUSE = 5000;

export class Follow {
  #lastId = null;

  // onEvents([event…]), onReset(), onState('live' | 'reconnecting' | 'busy', error)
  constructor(api, {onEvents, onReset, onState}) {
    Object.assign(this, {api, onEvents, onReset, onState});
  }

  async run(lastId) {
    this.#lastId = lastId;
    let pause = FIRST_PAUSE;
    for (;;) {
      await seen();
      try {
        const why = await this.#once(() => { pause = FIRST_PAUSE; });
        if (why === 'crowded') await this.#standAside();
        continue;
      } catch (error) {
        if (error.status === 429) {  // the server has as many streams as it may have
          await this.#standAside();
          continue;
        }
        this.onState('reconnecting', error);
      }
      await sleep(pause * (0.75 + Math.random() / 2));
      pause = Math.min(pause * 1.7, LONGEST_PAUSE);
    }
  }

  // Try again at once: somebody has seen the server alive.
  hurry() {
    wake();
  }

  async #standAside() {
    this.onState('busy');
    await sleep(STAND_ASIDE);
    this.#lastId = null;  // what was missed meanwhile is in the lists
  }

  // Returns why it has let go: 'crowded' or 'hidden'.
  async #once(onOpen) {
    const abort = new AbortController();
    let timer = setTimeout(() => abort.abort(), SILENCE);
    let patience = null;
    const look = () => {
      clearTimeout(patience);
      if (document.hidden) patience = setTimeout(() => abort.abort('hidden'), HIDDEN);
    };
    document.addEventListener('visibilitychange', look);
    look();
    try {
      const response = await this.api.stream('/events', {}, this.#lastId, abort.signal);
      this.onState('live');
      onOpen();
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      const parser = new SseParser();
      let [second, seen, crowded] = [0, 0, 0];
      for (;;) {
        const {done, value} = await reader.read();
        if (done) throw new Error('the stream has ended');
        clearTimeout(timer);
        timer = setTimeout(() => abort.abort(), SILENCE);
        const messages = parser.push(value);
        this.#deliver(messages);
        const now = Math.floor(Date.now() / 1000);
        if (now !== second) {
          crowded = seen > TOO_MANY ? crowded + 1 : 0;
          [second, seen] = [now, 0];
        }
        seen += messages.length;
        if (crowded >= 2) return 'crowded';
      }
    } catch (error) {
      if (abort.signal.reason === 'hidden') return 'hidden';
      throw error;
    } finally {
      clearTimeout(timer);
      clearTimeout(patience);
      document.removeEventListener('visibilitychange', look);
      abort.abort();
    }
  }

  #deliver(messages) {
    const events = [];
    for (const message of messages) {
      if (message.id) this.#lastId = message.id;
      if (message.event === 'reset') this.onReset();
      else if (message.data) events.push({id: Number(message.id ?? 0), event: JSON.parse(message.data)});
    }
    if (events.length) this.onEvents(events);
  }
}

// Server-Sent Events, as far as this server sends them.
export class SseParser {
  #rest = '';
  #message = {};

  push(text) {
    const lines = (this.#rest + text).split('\n');
    this.#rest = lines.pop();
    const done = [];
    for (const line of lines) {
      if (line === '') {
        if (this.#message.data !== undefined) done.push(this.#message);
        this.#message = {};
      } else if (!line.startsWith(':')) {
        const colon = line.indexOf(':');
        this.#message[line.slice(0, colon)] = line.slice(colon + 1).trimStart();
      }
    }
    return done;
  }
}

let wake = () => {};
function sleep(ms) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    wake = () => { clearTimeout(timer); resolve(); };
  });
}
