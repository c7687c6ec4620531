// How this page makes elements: never from HTML. What a user has named a resource, a node or an error is text, whatever
// characters are in it.

export const byId = (id) => document.getElementById(id);

// h('p', {class: 'hint'}, 'text', child): attributes as they are, `on…` as listeners, nothing for null and false.
export function h(tag, attributes = {}, ...children) {
  const svg = ['svg', 'path', 'line', 'circle', 'g', 'rect'].includes(tag);
  const element = svg ? document.createElementNS('http://www.w3.org/2000/svg', tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? '' : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

// Resolves when somebody can see the page.
export function seen() {
  return new Promise((resolve) => {
    const look = () => {
      if (document.hidden) return;
      document.removeEventListener('visibilitychange', look);
      resolve();
    };
    document.addEventListener('visibilitychange', look);
    look();
  });
}

// These children, in this order; one that is there already is not touched, and so keeps focus and selection.
export function arrange(parent, children) {
  for (const child of [...parent.children]) if (!children.includes(child)) child.remove();
  children.forEach((child, i) => { if (parent.children[i] !== child) parent.insertBefore(child, parent.children[i] ?? null); });
}

// Changes only what is different, so that a selection or a screen reader is not disturbed every second.
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export function setAttribute(element, name, value) {
  if (value === null || value === undefined) element.removeAttribute(name);
  else if (element.getAttribute(name) !== String(value)) element.setAttribute(name, value);
}
