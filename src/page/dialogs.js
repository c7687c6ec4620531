// The two questions this page asks: who are you, and do you really want to end somebody's hold.

import {byId, h} from '/page/dom.js';

// Shown until something is typed: without it the page has nothing to show.
export function askCredential(wasWrong) {
  const dialog = byId('credential-dialog');
  const input = byId('credential');
  byId('credential-error').textContent = wasWrong ? 'The server does not know this credential.' : '';
  input.value = '';
  return new Promise((resolve) => {
    const again = () => dialog.showModal();  // Escape closes it, whatever a listener for 'cancel' says
    dialog.addEventListener('close', again);
    byId('credential-form').onsubmit = (event) => {
      event.preventDefault();
      const typed = input.value.trim();
      if (!typed) return;
      if (!/^[\x21-\x7e]+$/.test(typed)) {  // no browser would send it
        byId('credential-error').textContent = 'A credential has only letters, digits and signs of ASCII; this text has others.';
        return;
      }
      input.value = '';  // the field must not keep it
      dialog.removeEventListener('close', again);
      dialog.close();
      resolve(typed);
    };
    if (!dialog.open) dialog.showModal();
    input.focus();
  });
}

export function askBreak(api, lane, onDone) {
  const dialog = byId('break-dialog');
  const reason = byId('break-reason');
  const problem = byId('break-error');
  byId('break-what').replaceChildren(h('span', {class: 'operation'}, lane.type), ' ', h('span', {class: 'mono'}, lane.resource_id),
    ', held by ', h('span', {class: 'node'}, lane.holder.node_id));
  problem.textContent = '';
  reason.value = '';
  byId('break-cancel').onclick = () => dialog.close();
  byId('break-form').onsubmit = async (event) => {
    event.preventDefault();
    if (!reason.value.trim()) return;
    byId('break-confirm').disabled = true;
    try {
      await api.post('/admin/break', {type: lane.type, resource_id: lane.resource_id, reason: reason.value.trim()});
      dialog.close();
      onDone();
    } catch (error) {
      problem.textContent = error.code === 'forbidden' ? 'Your credential may not do this: it needs the role admin.' : error.message;
    } finally {
      byId('break-confirm').disabled = false;
    }
  };
  dialog.showModal();
  reason.focus();
}
