// A real turnstiled for the tests of the page: started on a free port, ended by its process id, restarted on its data.

import {spawn} from 'node:child_process';
import net from 'node:net';
import {createHash, randomBytes} from 'node:crypto';
import {mkdtempSync, rmSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join, resolve} from 'node:path';
import {fileURLToPath} from 'node:url';
import readline from 'node:readline';

const HERE = fileURLToPath(new URL('.', import.meta.url));
export const BINARY = process.env.TURNSTILED ?? resolve(HERE, '../../build/bin/turnstiled');

export const secret = () => 'ts_' + randomBytes(32).toString('base64url');

// For --credentials: each {name, role, secret}. The test removes nothing of it: it holds no secret.
export function credentialsFile(credentials) {
  const path = join(mkdtempSync(join(tmpdir(), 'turnstile-page-')), 'credentials.toml');
  writeFileSync(path, credentials.map((one) => `[[credential]]\nname = "${one.name}"\nrole = "${one.role}"\nsecret_sha256 = "${
    createHash('sha256').update(one.secret).digest('hex')}"\n${one.resources ? `resources = ${JSON.stringify(one.resources)}\n` : ''}`).join('\n'), {mode: 0o600});
  return path;
}

export class Server {
  #process = null;
  #directory = mkdtempSync(join(tmpdir(), 'turnstile-page-'));
  #address = '127.0.0.1:0';

  constructor(flags = [], store = 'file') {
    this.flags = flags;
    this.store = store === 'file' ? `file:${join(this.#directory, 'data')}` : store;
  }

  async start() {
    this.#process = spawn(BINARY, ['--listen', this.#address, '--store', this.store, '--claim-timeout', '10m',
      '--retain-completed', '30m', ...this.flags], {stdio: ['ignore', 'pipe', process.env.VERBOSE ? 'inherit' : 'ignore'], cwd: this.#directory});
    for await (const line of readline.createInterface(this.#process.stdout)) {
      if (!line.startsWith('listening on ')) continue;
      this.#address = line.slice('listening on '.length).trim().replace(/^https?:\/\//, '');
      this.url = `http://${this.#address}`;
      return this;
    }
    throw new Error('the server did not start');
  }

  // At once, without a word: as a machine that loses its power.
  async kill() {
    const ended = new Promise((done) => this.#process.once('exit', done));
    this.#process.kill('SIGKILL');
    await ended;
  }

  async remove() {
    if (this.#process.exitCode === null && this.#process.signalCode === null) await this.kill();
    rmSync(this.#directory, {recursive: true, force: true});
  }

  async post(path, body) {
    const response = await fetch(this.url + path, {method: 'POST', body: JSON.stringify(body),
      headers: this.credential ? {Authorization: `Bearer ${this.credential}`} : {}});
    return response.json();
  }

  lock(type, resource_id, node_id, more = {}) {
    return this.post('/lock', {type, resource_id, node_id, ...more});
  }

  unlock(type, resource_id, node_id, more = {}) {
    return this.post('/unlock', {type, resource_id, node_id, ...more});
  }

  // So many holds of jobs, named prefix/00000 and on.
  async fill(count, prefix = 'bulk', type = 'job') {
    const name = (i) => `${prefix}/${String(i).padStart(6, '0')}`;
    for (let from = 0; from < count; from += 1000) {
      const requests = Array.from({length: Math.min(1000, count - from)}, (_, i) =>
        ({call: 'lock', type, resource_id: name(from + i), node_id: `node-${i % 50}`}));
      await this.post('/batch', {requests});
    }
  }
}

// One member, which is enough to elect a leader by.
export class Etcd {
  #process = null;
  #directory = mkdtempSync(join(tmpdir(), 'turnstile-page-etcd-'));

  async start() {
    const [client, peer] = [await freePort(), await freePort()].map((port) => `http://127.0.0.1:${port}`);
    this.#process = spawn('etcd', ['--data-dir', join(this.#directory, 'data'), '--listen-client-urls', client, '--advertise-client-urls', client,
      '--listen-peer-urls', peer, '--initial-advertise-peer-urls', peer, '--initial-cluster', `default=${peer}`, '--log-level', 'error'],
    {stdio: 'ignore'});
    this.store = `etcd://${client.slice('http://'.length)}/turnstile`;
    for (;;) {
      const healthy = await fetch(`${client}/health`).then((answer) => answer.ok, () => false);
      if (healthy) return this;
      if (this.#process.exitCode !== null) throw new Error('etcd did not start');
      await new Promise((done) => setTimeout(done, 50));
    }
  }

  remove() {
    this.#process?.kill('SIGKILL');
    rmSync(this.#directory, {recursive: true, force: true});
  }
}

function freePort() {
  return new Promise((done) => {
    const socket = net.createServer().listen(0, '127.0.0.1', () => {
      const {port} = socket.address();
      socket.close(() => done(port));
    });
  });
}
