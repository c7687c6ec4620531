// The last minutes as small pictures: one series as an area, a second as a line. No library: it is two paths and a scale.

import {h, setAttribute, setText} from '/page/dom.js';
import {duration, measure} from '/page/format.js';

const WIDTH = 300, HEIGHT = 64;

export class Chart {
  // series: [{name, kind: 'area' | 'line', tone}]; unit is said behind each number.
  constructor({title, unit, series}) {
    Object.assign(this, {title, unit, series});
    this.areas = series.map((one) => h('path', {class: `area ${one.tone}`}));
    this.lines = series.map((one) => h('path', {class: `line ${one.tone}`, 'vector-effect': 'non-scaling-stroke'}));
    this.cursor = h('line', {class: 'cursor', y1: '0', y2: HEIGHT, 'vector-effect': 'non-scaling-stroke', visibility: 'hidden'});
    this.svg = h('svg', {viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: 'none', role: 'img'}, this.areas, this.lines, this.cursor);
    this.numbers = series.map(() => h('span', {class: 'value'}));
    this.when = h('span', {class: 'when'});
    this.element = h('figure', {class: 'chart card'},
      h('figcaption', {}, h('span', {class: 'title'}, title), this.when),
      h('p', {class: 'values'}, series.map((one, i) => h('span', {class: `key ${one.tone}`}, this.numbers[i],
        h('span', {class: 'name'}, one.name)))),
      this.svg);
    this.svg.addEventListener('pointermove', (event) => this.#point(event));
    this.svg.addEventListener('pointerleave', () => this.#leave());
  }

  // rows: an array of numbers, or null where there is none, for each series; all of one length.
  show(rows, stepMs, points) {
    Object.assign(this, {rows, stepMs, points});
    this.most = Math.max(0, ...rows.flat().filter((value) => value !== null));
    this.scale = roundUp(Math.max(1e-9, this.most));
    rows.forEach((row, i) => {
      if (this.series[i].kind === 'area') this.areas[i].setAttribute('d', this.#path(row, 'area'));
      this.lines[i].setAttribute('d', this.#path(row, 'line'));
    });
    if (this.at === undefined) this.#say();
    const peak = this.series.map((one, i) => `${one.name}: now ${this.#value(i, rows[i].length - 1)}, at most ${
      measure(Math.max(0, ...rows[i].filter((value) => value !== null)))}`).join('; ');
    setAttribute(this.svg, 'aria-label', `${this.title}, ${this.unit}, the last ${duration(rows[0].length * stepMs)}. ${peak}`);
  }

  #x(i, length) {
    return WIDTH - ((length - 1 - i) * WIDTH) / (this.points - 1);
  }

  #path(row, kind) {
    const y = (value) => HEIGHT - 1 - ((HEIGHT - 4) * value) / this.scale;
    let path = '';
    let open = false;  // a stretch without values is a gap, not a zero
    row.forEach((value, i) => {
      if (value === null) {
        if (open && kind === 'area') path += `V${HEIGHT}Z`;
        open = false;
        return;
      }
      const x = this.#x(i, row.length).toFixed(1);
      const point = `${x} ${y(value).toFixed(1)}`;
      path += open ? `L${point}` : kind === 'area' ? `M${x} ${HEIGHT}L${point}` : `M${point}h.01`;
      open = true;
    });
    return open && kind === 'area' ? path + `V${HEIGHT}Z` : path;
  }

  #value(i, at) {
    const value = this.rows[i][at];
    return value === null || value === undefined ? '–' : measure(value);
  }

  #say() {
    const at = this.at ?? this.rows[0].length - 1;
    this.series.forEach((one, i) => setText(this.numbers[i], this.#value(i, at)));
    const ago = (this.rows[0].length - 1 - at) * this.stepMs;
    setText(this.when, this.at === undefined ? `${this.unit} · max ${measure(this.most)}` : `${duration(ago)} ago`);
  }

  #point(event) {
    if (!this.rows?.[0].length) return;
    const box = this.svg.getBoundingClientRect();
    const back = Math.round(((box.right - event.clientX) / box.width) * (this.points - 1));
    this.at = Math.min(this.rows[0].length - 1, Math.max(0, this.rows[0].length - 1 - back));
    const x = this.#x(this.at, this.rows[0].length);
    for (const name of ['x1', 'x2']) this.cursor.setAttribute(name, x);
    this.cursor.setAttribute('visibility', 'visible');
    this.#say();
  }

  #leave() {
    this.at = undefined;
    this.cursor.setAttribute('visibility', 'hidden');
    if (this.rows) this.#say();
  }
}

// A round number: a scale that does not jump with every value.
function roundUp(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 1.5, 2, 3, 4, 5, 6, 8, 10].map((step) => step * power).find((step) => step >= value * 0.999);
}
