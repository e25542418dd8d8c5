// The connection to the server: comes back by itself, and sends the token along if there is one.

const KEY = "moorage.token";
// The server tells something several times a second: after so long without, nobody is there.
const SILENCE = 10_000;
const PATIENCE = [300, 1_000, 2_000, 5_000];

export class Denied extends Error {}

export const remember = (token) => sessionStorage.setItem(KEY, token);

function headers() {
  const token = sessionStorage.getItem(KEY);
  return token ? { Authorization: `Bearer ${token}` } : {};
}

async function ask(path, signal, more = {}) {
  const answer = await fetch(path, { headers: { ...headers(), ...more }, cache: "no-store", signal });
  if (answer.status === 401 || answer.status === 403) throw new Denied((await answer.text()).trim());
  return answer;
}

// A JSON document; null if there is no such thing.
export async function read(path, signal) {
  return parse(await ask(path, signal));
}

// The same with its tag; undefined if nothing can have changed since it had the tag given.
export async function readNewer(path, tag) {
  const answer = await ask(path, undefined, tag ? { "If-None-Match": tag } : {});
  if (answer.status === 304) return undefined;
  return { about: await parse(answer), tag: answer.headers.get("ETag") };
}

async function parse(answer) {
  if (answer.status === 404) return null;
  if (!answer.ok) throw new Error(`the server answers ${answer.status}`);
  return answer.json();
}

// Follows the stream for ever. `denied` returns a promise of when to try again.
export async function follow({ tell, state, denied }) {
  let failures = 0;
  for (;;) {
    try {
      await listen((message) => {
        failures = 0;
        state("live");
        tell(message);
      });
    } catch (error) {
      if (error instanceof Denied) {
        state("denied");
        await denied(error.message);
        continue;
      }
    }
    state("lost");
    const wait = PATIENCE[Math.min(failures++, PATIENCE.length - 1)];
    await new Promise((done) => setTimeout(done, wait));
  }
}

async function listen(tell) {
  const abort = new AbortController();
  let alarm = setTimeout(() => abort.abort(), SILENCE);
  try {
    const answer = await ask("api/stream", abort.signal);
    if (!answer.ok) throw new Error(`the server answers ${answer.status}`);
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = [];
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      clearTimeout(alarm);
      alarm = setTimeout(() => abort.abort(), SILENCE);
      const lines = value.split("\n");
      rest.push(lines[0]);
      for (const line of lines.slice(1)) {
        tell(JSON.parse(rest.join("")));
        rest = [line];
      }
    }
  } finally {
    clearTimeout(alarm);
    abort.abort();
  }
}
