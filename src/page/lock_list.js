// The locks that match, as far as they have been looked at: pages of the server's, joined into one row of lanes.
//
// The server sends pages behind a cursor, never everything. What is in view is read again when something may have changed;
// pages out of view are left as they were until somebody scrolls there.

const PAGE = 200;
const LARGEST = 1000;  // on the way to the end; and of a list that is sorted by something else than names, which has no further pages

export const keyOf = (lane) => `${lane.type}\n${lane.resource_id}`;
const order = (a, b) => (a.resource_id === b.resource_id ? compare(a.type, b.type) : compare(a.resource_id, b.resource_id));
// The server compares bytes of UTF-8, which is the order of code points, not of UTF-16.
function compare(a, b) {
  const length = Math.min(a.length, b.length);
  let i = 0;
  while (i < length && a[i] === b[i]) ++i;
  return i < length ? rank(a.charCodeAt(i)) - rank(b.charCodeAt(i)) : a.length - b.length;
}
const rank = (unit) => (unit < 0xd800 ? unit : unit < 0xe000 ? unit + 0x2000 : unit - 0x800);  // surrogates come last

export class LockList {
  #pages = [];  // {cursor, limit, lanes, next}
  #query = {};
  #generation = 0;  // answers to an earlier query are dropped
  lanes = [];
  matched = null;
  took = 0;  // ms, the last page

  constructor(api) {
    this.api = api;
  }

  ask({state, q, node, op, sort}) {
    this.#generation += 1;
    this.#query = {state, node, type: op, sort, names: 1, limit: sort ? LARGEST : PAGE};
    if (q.startsWith('^')) this.#query.prefix = q.slice(1);
    else this.#query.contains = q;
    this.#pages = [];
  }

  get hasMore() {
    return Boolean(this.#pages.at(-1)?.next);
  }

  // Reads again what stands in these rows. The first page also brings how many there are.
  async refresh(from, to) {
    const generation = this.#generation;
    let at = 0;
    for (let i = 0; i === 0 || i < this.#pages.length; ++i) {
      const length = this.#pages[i]?.lanes.length ?? 0;
      if (i === 0 || (at < to && at + length > from)) await this.#read(i, this.#pages[i]?.cursor ?? '', generation, this.#pages[i]?.limit);
      if (generation !== this.#generation) return;
      at += length;
    }
    this.#join();
  }

  async readMore(toEnd) {
    const generation = this.#generation;
    const [index, cursor] = [this.#pages.length, this.#pages.at(-1)?.next];
    if (!cursor) return;
    await this.#read(index, cursor, generation, toEnd ? LARGEST : PAGE);
    if (generation !== this.#generation) return;
    const last = this.lanes.at(-1);
    this.lanes = this.lanes.concat(this.#pages[index].lanes.filter((lane) => !last || order(last, lane) < 0));
  }

  async #read(index, cursor, generation, limit = this.#query.limit) {
    const began = performance.now();
    const answer = await this.api.get('/locks', {...this.#query, limit, cursor, count: index === 0 ? 1 : ''});
    if (generation !== this.#generation) return;
    this.took = performance.now() - began;
    const page = {cursor, limit, lanes: answer.locks, next: answer.next_cursor ?? null};
    // A page that now ends elsewhere moves the beginning of the next.
    if (this.#pages[index + 1] && page.next !== this.#pages[index].next) {
      if (page.next) this.#pages[index + 1].cursor = page.next;
      else this.#pages.length = index + 1;
    }
    this.#pages[index] = page;
    if (index === 0 && answer.matched !== undefined) this.matched = answer.matched;
  }

  #join() {
    this.lanes = this.#pages.flatMap((page) => page.lanes);
    if (this.#query.sort) return;
    // Two pages that were read at different times may overlap.
    let last = null;
    this.lanes = this.lanes.filter((lane) => (last === null || order(last, lane) < 0) && (last = lane));
  }
}
