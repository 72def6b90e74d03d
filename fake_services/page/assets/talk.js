// Everything that is asked of the server, and the news from it.

const GIVEN = JSON.parse(byId("given").textContent);
const WAIT_S = 25, PACE_MS = 120, AGAIN_MS = 1500;

async function answerOf(response) {
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.error);
  return answer;
}

async function get(path, query = {}) {
  const given = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== ""));
  return answerOf(await fetch(`${path}?${given}`));
}

async function post(path, body) {
  return answerOf(await fetch(path, {
    method: "POST",
    headers: { "Content-Type": "application/json", [GIVEN.header]: GIVEN.token },
    body: JSON.stringify(body),
  }));
}

function whenSeen() {
  if (!document.hidden) return Promise.resolve();
  return new Promise((resolve) => {
    document.addEventListener("visibilitychange", resolve, { once: true });
  });
}

function showLive(on, words) {
  byId("live").classList.toggle("on", on);
  setText(byId("live"), words);
}

/** Hands each new state to `show`, for as long as the page is open. */
async function follow(show) {
  let serving = "", version = "", stopped = false;
  for (;;) {
    await whenSeen();
    try {
      const state = await get("/api/state", { after: version, wait_s: stopped ? 0 : WAIT_S });
      if (serving && serving !== state.serving) {
        location.reload(); // another serving at the same address: its token is another one
        return;
      }
      ({ serving, version } = state);
      stopped = false;
      showLive(true, "Live");
      await show(state);
      document.documentElement.dataset.ready = "yes";
      document.documentElement.dataset.version = version;
      await pause(PACE_MS);
    } catch {
      stopped = true;
      showLive(false, "No answer: the services have stopped");
      await pause(AGAIN_MS);
    }
  }
}
