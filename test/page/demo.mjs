// A small cluster at work, for screenshots: nodes pull layers, build, migrate, fail, wait and skip, through the API as any client.
//
// Names, sizes and errors are made up; what the page shows of them is what the server really said. Called by ./dev screenshots.

const NODES = Array.from({length: 24}, (_, i) => `node-${String(i + 1).padStart(2, '0')}`);
const IMAGES = ['web', 'api', 'worker', 'search', 'billing', 'mailer', 'thumbnails', 'gateway'];
const ERRORS = ['registry answered 502 Bad Gateway', 'connection reset by peer after 18.2 MiB', 'no space left on device'];

let seed = 20261118;
function random() {  // the same pictures every time
  seed = (seed * 1103515245 + 12345) % 2147483648;
  return seed / 2147483648;
}
const pick = (list) => list[Math.floor(random() * list.length)];
const digest = () => 'sha256:' + Array.from({length: 64}, () => Math.floor(random() * 16).toString(16)).join('');
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

export class Demo {
  #stopped = false;
  #layers = Array.from({length: 14}, digest);

  constructor(base) {
    this.base = base;
  }

  async call(path, body) {
    const response = await fetch(this.base + path, {method: 'POST', body: JSON.stringify(body)});
    return response.json();
  }

  stop() {
    this.#stopped = true;
  }

  // Holds that stay for the picture, with queues, progress and references.
  async furnish() {
    const held = [
      {type: 'pull', resource_id: this.#layers[0], node_id: 'node-07', info: 'registry.example/search:4.11', share: .62, size: 412e6, queue: 18},
      {type: 'pull', resource_id: this.#layers[1], node_id: 'node-02', info: 'registry.example/web:2026.11', share: .31, size: 96e6, queue: 7},
      {type: 'pull', resource_id: this.#layers[2], node_id: 'node-19', info: 'registry.example/api:7.2.0', share: .88, size: 233e6, queue: 4},
      {type: 'once', resource_id: 'db/orders/migrate-0142', node_id: 'node-11', info: 'deploy 8841', share: .45, size: 240, queue: 11},
      {type: 'once', resource_id: 'nightly/report-2026-11-18', node_id: 'node-05', queue: 3},
      {type: 'build', resource_id: 'artifact/thumbnails/linux-arm64', node_id: 'ci-runner-3', info: 'pipeline 20931', share: .7, size: 57, queue: 2},
      {type: 'build', resource_id: 'artifact/gateway/linux-amd64', node_id: 'ci-runner-1', info: 'pipeline 20933', queue: 0},
      {type: 'update', resource_id: 'config/edge', node_id: 'node-14', info: 'rotate certificates', queue: 1},
      {type: 'delete', resource_id: this.#layers[3], node_id: 'node-21', queue: 0},
    ];
    for (const {share, size, queue, ...lane} of held) {
      const {token} = await this.call('/lock', {...lane, lease_ms: 600000});
      if (size) await this.call('/renew', {type: lane.type, resource_id: lane.resource_id, node_id: lane.node_id, token,
        done: Math.round(share * size), total: Math.round(size)});
      const others = NODES.filter((node) => node !== lane.node_id).sort(() => random() - .5).slice(0, queue);
      for (const node_id of others) await this.call('/lock', {type: lane.type, resource_id: lane.resource_id, node_id});
    }
    for (const layer of this.#layers.slice(4))
      for (const node_id of NODES.filter(() => random() < .4)) await this.call('/refs/add', {resource_id: layer, node_id});
  }

  // One piece of work: somebody does it, others wait for it and skip, or it fails and the next one takes over.
  async #work() {
    const type = random() < .75 ? 'pull' : pick(['once', 'build', 'update']);
    const name = {pull: digest, once: () => `jobs/${pick(IMAGES)}-${Math.floor(random() * 1e4)}`, build: () => `artifact/${pick(IMAGES)}/linux-amd64`,
      update: () => `config/${pick(IMAGES)}`}[type]();
    const [first, ...others] = [...NODES].sort(() => random() - .5).slice(0, 2 + Math.floor(random() * 7));
    const lane = {type, resource_id: name};
    const grant = await this.call('/lock', {...lane, node_id: first, lease_ms: 60000});
    if (!grant.acquired) return;
    const waits = others.map((node_id) => this.call('/lock', {...lane, node_id, wait_ms: 20000, lease_ms: 60000}));
    await pause(200 + 2500 * random());
    const failed = random() < .12;
    await this.call('/unlock', {...lane, node_id: first, token: grant.token, ...(failed ? {success: false, error: pick(ERRORS)}
      : {success: true, keep_ms: 60000, result: type === 'once' ? `${Math.floor(random() * 900) + 100} rows` : undefined})});
    for (const [i, wait] of waits.entries()) {
      const answer = await wait;
      if (answer.acquired) await this.call('/unlock', {...lane, node_id: others[i], token: answer.token, success: true});
    }
  }

  async run() {
    const lane = async () => {
      while (!this.#stopped) {
        await this.#work().catch(() => {});
        await pause(1500 * random());
      }
    };
    await Promise.all(Array.from({length: 9}, lane));
  }
}

if (process.argv[1] === new URL(import.meta.url).pathname) {
  const demo = new Demo(process.argv[2] ?? 'http://127.0.0.1:8086');
  await demo.furnish();
  await demo.run();
}
