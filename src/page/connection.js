// Whether what is shown is true at the moment: a word at the top, and a notice when another server has to be asked, or none may.

import {byId, h, setAttribute, setText} from '/page/dom.js';
import {duration} from '/page/format.js';

const GONE_AFTER = 8000;    // ms without an answer, until another server is tried
const MOVES_AFTER = 5000;   // ms in which a reader may say no to that

const WORDS = {
  connecting: 'Connecting…', live: 'Live', busy: 'Live, every 2 s', reconnecting: 'Reconnecting…', no_leader: 'Waiting for a leader…',
  standby: 'Standby', refused: 'Refused',
};
const CAUSES = {no_leader: 'no_leader', not_leader: 'standby', foreign_origin: 'refused'};  // an error's code -> what it means here

export class Connection {
  #lostAt = 0;
  #staying = false;  // the reader has said so
  #moving = null;
  others = [];  // addresses of the other servers, as far as they are known

  constructor(api) {
    this.api = api;
    setInterval(() => this.#tick(), 1000);
  }

  show(state, error) {
    if (state === 'reconnecting') state = CAUSES[error?.code] ?? state;
    const passing = state === 'reconnecting' || state === 'no_leader';
    this.#lostAt = passing ? this.#lostAt || Date.now() : 0;
    setAttribute(byId('connection'), 'data-state', state);
    setText(byId('connection-text'), WORDS[state]);
    document.body.classList.toggle('stale', passing || state === 'standby' || state === 'refused');
    this.#tick();
    if (state === 'standby') this.#showLeader();
    else if (state === 'refused') this.#notice(error.message);
    else if (!passing) this.#notice();
    else if (Date.now() - this.#lostAt > GONE_AFTER && this.others.length) this.#moveTo(this.others[0], 'This server does not answer. Another one: ');
  }

  // Beside the word and not in it: a screen reader says the word once, and does not count.
  #tick() {
    setText(byId('lost-for'), this.#lostAt ? duration(Date.now() - this.#lostAt) : '');
  }

  async #showLeader() {
    const {leader} = await this.api.get('/servers').catch(() => ({}));
    if (!isAddress(leader) || byId('connection').dataset.state !== 'standby') return;
    if (this.#staying) this.#notice('Locks are shown by the leader: ', h('a', {href: hereAt(leader)}, leader));
    else this.#moveTo(leader, 'Another server leads now: ');
  }

  // This server has become a standby, or is gone while others are there: the page moves on, unless told to stay.
  #moveTo(url, why) {
    if (!byId('notice').hidden || this.#staying || !isAddress(url)) return;
    const stay = () => { this.#staying = true; this.#notice(); this.#showLeader(); };
    this.#notice(why, h('a', {href: hereAt(url)}, url), '. This page follows in a moment. ', h('button', {type: 'button', onclick: stay}, 'Stay here'));
    this.#moving = setTimeout(() => location.assign(hereAt(url)), MOVES_AFTER);
  }

  // Without anything to say it goes away, and the page stays where it is.
  #notice(...parts) {
    clearTimeout(this.#moving);
    const notice = byId('notice');
    const next = h('p', {}, parts);
    if (next.textContent !== notice.textContent) notice.replaceChildren(...next.childNodes);  // said once, not at each look
    notice.hidden = !parts.length;
  }
}

const isAddress = (url) => /^https?:\/\//.test(url ?? '');
const hereAt = (url) => url.replace(/\/+$/, '') + '/' + location.hash;
