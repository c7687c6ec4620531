// Calls to the server: adds the credential, asks for one when the server wants it, and turns every way to fail into an
// ApiError with a code.

export class ApiError extends Error {
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

export class Api {
  #credential = '';  // in memory only, on purpose
  #known = false;    // the server has taken it, or wants none
  #probe = null;     // the call that finds that out; the others wait for it, so that a typing error is one failed log-in

  // askCredential(wasWrong): a promise of what the user typed. onLogin(): the server has taken another one.
  constructor(askCredential, onLogin) {
    Object.assign(this, {askCredential, onLogin});
  }

  async get(path, query = {}, signal = undefined) {
    return (await this.#fetch(path + encode(query), {signal}, 20000)).json();
  }

  async post(path, body) {
    return (await this.#fetch(path, {method: 'POST', body: JSON.stringify(body)}, 20000)).json();
  }

  // An endless answer; the caller reads its body.
  async stream(path, query, lastEventId, signal) {
    return this.#fetch(path + encode(query), {signal, headers: lastEventId ? {'Last-Event-ID': String(lastEventId)} : {}}, 0);
  }

  async #fetch(target, options, patience) {
    for (;;) {
      if (!this.#known && this.#probe) {
        await this.#probe;
        continue;
      }
      const used = this.#credential;
      if (this.#known) {
        const response = await attempt(target, options, used, patience);
        if (response.status !== 401) return good(response);
        if (used === this.#credential) this.#known = false;  // it was taken away
        continue;
      }
      let done;
      this.#probe = new Promise((resolve) => { done = resolve; });
      try {
        const response = await attempt(target, options, used, patience);
        this.#known = response.status !== 401;
        if (this.#known && used) this.onLogin();
        if (this.#known) return await good(response);
        this.#credential = await this.askCredential(used !== '');
      } finally {
        this.#probe = null;
        done();
      }
    }
  }
}

function encode(query) {
  const pairs = Object.entries(query).filter(([, value]) => value !== '' && value !== null && value !== undefined);
  return pairs.length ? '?' + new URLSearchParams(pairs) : '';
}

async function attempt(target, options, credential, patience) {
  const headers = {...options.headers};
  if (credential) headers.Authorization = `Bearer ${credential}`;
  const signals = [options.signal, patience ? AbortSignal.timeout(patience) : null].filter(Boolean);
  try {
    return await fetch(target, {
      ...options, headers, signal: signals.length ? AbortSignal.any(signals) : undefined, cache: 'no-store',
      credentials: 'omit', redirect: 'manual',
    });
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw new ApiError(0, 'unreachable', 'The server does not answer.');
  }
}

async function good(response) {
  // To a browser a redirection to another server is a closed box; GET /servers tells where the leader is.
  if (response.type === 'opaqueredirect') throw new ApiError(307, 'not_leader', 'Another server leads.');
  if (response.ok) return response;
  let body = {};
  try {
    body = await response.json();
  } catch {
    // It need not be ours: a proxy may have answered.
  }
  throw new ApiError(response.status, body.code ?? 'unknown', body.error ?? `The server answered ${response.status}.`);
}
