// What is shown, as the part of the address behind the #: a link to it can be sent to somebody else.

const NAMES = ['state', 'q', 'node', 'op', 'sort', 'type', 'resource'];

// `state` is there only if it is not the usual one, so that a plain address stays plain.
export function readRoute() {
  const given = new URLSearchParams(location.hash.slice(1));
  const route = Object.fromEntries(NAMES.map((name) => [name, given.get(name) ?? '']));
  route.state = given.has('state') ? route.state : 'active';
  if (route.state === 'all') route.state = '';
  return route;
}

export function hashOf(route) {
  const pairs = NAMES.map((name) => [name, name === 'state' ? (route.state || 'all') : route[name]])
    .filter(([name, value]) => value && !(name === 'state' && value === 'active'));
  return '#' + new URLSearchParams(pairs);
}
