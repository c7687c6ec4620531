// Numbers, times and names as people read them.

const whole = new Intl.NumberFormat('en');
const three = new Intl.NumberFormat('en', {maximumSignificantDigits: 3});

export const count = (number) => whole.format(number);

// Three digits are enough for a measure: 0.42, 12.3, 1,240.
export const measure = (number) => (Math.abs(number) >= 100 ? whole.format(Math.round(number)) : three.format(number));

export function duration(ms) {
  const s = Math.max(0, Math.floor(ms / 1000));
  const two = (number) => String(number).padStart(2, '0');
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} m ${two(s % 60)} s`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${two(Math.floor(s / 60) % 60)} m`;
  return `${Math.floor(s / 86400)} d ${Math.floor(s / 3600) % 24} h`;
}

export function bytes(number) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let unit = 0;
  for (; number >= 1024 && unit < units.length - 1; ++unit) number /= 1024;
  return `${three.format(number)} ${units[unit]}`;
}

// The server's clock is the one that counts: browsers' clocks differ by minutes.
let skew = 0;
export function setServerTime(rfc3339) {
  skew = Date.parse(rfc3339) - Date.now();
}
export const serverNow = () => Date.now() + skew;
export const since = (rfc3339) => duration(serverNow() - Date.parse(rfc3339));

// The time of day; what is not of today has its date.
export function clock(rfc3339) {
  const then = new Date(rfc3339);
  const time = then.toLocaleTimeString([], {hourCycle: 'h23'});
  if (then.toDateString() === new Date(serverNow()).toDateString()) return time;
  return `${then.toLocaleDateString([], {day: 'numeric', month: 'short'})}, ${time}`;
}

// The end of a long id tells it from its neighbours: it must not be the part that is cut off. Where text runs from right to
// left, or is made to, two parts would stand in the wrong order.
const FROM_THE_RIGHT = /[\u0590-\u08ff\u200f\u202a-\u202e\u2066-\u2069\ufb1d-\ufdff\ufe70-\ufeff]/;
export function split(id) {
  const characters = Array.from(id);
  if (characters.length <= 24 || FROM_THE_RIGHT.test(id)) return [id, ''];
  return [characters.slice(0, -8).join(''), characters.slice(-8).join('')];
}
