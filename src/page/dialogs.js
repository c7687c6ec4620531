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

// Only the hold that was asked about is ended. If another one has begun meanwhile, nothing is, and the reader looks again.
export function askBreak(api, lane, onDone) {
  const dialog = byId('break-dialog');
  const reason = byId('break-reason');
  const problem = byId('break-error');
  const confirm = byId('break-confirm');
  const {type, resource_id, holder: {node_id, token}} = lane;
  byId('break-what').replaceChildren(h('span', {class: 'operation'}, type), ' ', h('span', {class: 'mono'}, resource_id),
    ' Held by ', h('span', {class: 'node'}, node_id));
  problem.textContent = '';
  reason.value = '';
  confirm.disabled = false;
  byId('break-cancel').onclick = () => dialog.close();
  byId('break-form').onsubmit = async (event) => {
    event.preventDefault();
    if (!reason.value.trim()) return;
    confirm.disabled = true;
    try {
      await api.post('/admin/break', {type, resource_id, token, reason: reason.value.trim()});
      dialog.close();
      onDone();
    } catch (error) {
      const changed = error.code === 'stale_token';
      problem.replaceChildren(...(changed ? await whoHolds(api, {type, resource_id})
        : [error.code === 'forbidden' ? 'Your credential may not do this: it needs the role admin.' : error.message]));
      confirm.disabled = changed;
      if (changed) onDone();
    }
  };
  dialog.showModal();
  reason.focus();
}

async function whoHolds(api, lane) {
  const {holder} = await api.get('/lock/status', lane).catch(() => ({}));
  return ['The holder has changed', ...(holder ? [': now ', h('span', {class: 'node'}, holder.node_id)] : []), '. Close this and look again.'];
}
