// Every text of the page, in English and Korean, in one table; and the language in use.

const WORDS = {
  "title": ["One lock, one valid leader", "하나의 락, 하나의 유효한 리더"],
  "skip": ["Skip to the candidates", "후보로 건너뛰기"],
  "intro": [
    "Several candidates stand for election. At most one (or as many as there are slots) holds a lease that is valid; the others wait, or are skipped. This page runs the real library: start the candidates, then freeze one, kill it, or cut it off, and watch who leads.",
    "여러 후보가 선출을 기다립니다. 유효한 리스(lease)는 한 후보(또는 슬롯 수만큼)만 갖고, 나머지는 기다리거나 건너뜁니다. 이 페이지 뒤에서는 실제 라이브러리가 돌아갑니다. 후보를 시작한 뒤 멈추고, 죽이고, 저장소에서 끊어 보면서 누가 리더인지 지켜보세요."],
  "footer": ["Times are this workbench's own. A lease ends for its holder 1 % and 2 ms before it ends in the store, so that the holder stops first.", "시간은 이 작업대의 시계를 따릅니다. 리스는 저장소에서 끝나기 1 %와 2 ms 전에 보유자에게서 먼저 끝납니다. 보유자가 먼저 멈추기 위해서입니다."],
  "language": ["Language", "언어"], "mode": ["Mode", "모드"],
  "mode.live": ["Live", "실시간"], "mode.ticks": ["Step by step", "한 단계씩"],
  "connected": ["connected", "연결됨"], "disconnected": ["not connected; trying again", "연결이 끊어짐, 다시 시도 중"],
  "missed": ["This page was too slow and missed {0} events; the table begins anew.", "페이지가 느려서 이벤트 {0}개를 놓쳤습니다. 표를 새로 시작합니다."],

  "scenarios.title": ["Watch a story", "이야기 보기"],
  "scenarios.intro": ["Each sets the bench up and does what a person could do by hand.", "각 이야기는 작업대를 준비하고, 사람이 손으로 할 수 있는 일을 차례로 합니다."],
  "scenario.end": ["End the story", "이야기 끝내기"],
  "scenario.step": ["step {0} of {1}", "{1}단계 중 {0}단계"],
  "scenario.over": ["over", "끝"], "scenario.failed": ["failed", "실패"],

  "candidates.title": ["Candidates for", "후보: "],
  "start.all": ["Start all", "모두 시작"], "reset": ["Start over", "처음부터"],
  "legend.title": ["What the chart shows", "차트 읽는 법"],
  "candidate": ["candidate {0}", "후보 {0}"],

  "phase.down": ["not running", "실행 안 됨"], "phase.connecting": ["connecting", "연결 중"],
  "phase.idle": ["between two stands", "다음 출마 전"], "phase.waiting": ["waits to be elected", "선출을 기다림"],
  "phase.leading": ["leads", "리더"], "phase.stale": ["works without a valid lease", "유효한 리스 없이 작업 중"],
  "flag.frozen": ["frozen", "정지됨"], "flag.cut": ["cut from the store", "저장소와 끊김"],
  "strip": ["Candidate {0}: {1}. Fencing token {2}, {3} left.", "후보 {0}: {1}. 펜싱 토큰 {2}, 남은 시간 {3}."],
  "strip.short": ["Candidate {0}: {1}.", "후보 {0}: {1}."],

  "do.start": ["Start", "시작"], "do.stop": ["Stop", "종료"], "do.freeze": ["Freeze", "정지"], "do.thaw": ["Thaw", "해동"],
  "do.kill": ["Kill", "강제 종료"], "do.cut": ["Cut off", "연결 끊기"], "do.mend": ["Reconnect", "다시 연결"],
  "do.again": ["Stand now", "지금 출마"],

  "legend.waiting": ["waits to be elected", "선출을 기다림"],
  "legend.leading": ["leads: its lease is valid", "리더: 리스가 유효함"],
  "legend.stale": ["works on although its lease has ended", "리스가 끝났는데도 작업 중"],
  "legend.kept": ["the work is over, the minimum lease keeps the slot", "작업은 끝났고 최소 리스가 슬롯을 유지함"],
  "legend.frozen": ["frozen: nothing of it runs", "정지: 아무 작업도 실행되지 않음"],
  "legend.cut": ["cut from the store", "저장소와 끊김"],
  "legend.elected": ["elected", "선출됨"], "legend.extended": ["lease extended", "리스 연장"],
  "legend.lost": ["lease lost", "리스 상실"], "legend.skipped": ["skipped: the wait was over", "건너뜀: 대기 시간이 끝남"],
  "legend.accepted": ["write accepted", "쓰기 승인"], "legend.refused": ["write refused as stale", "오래된 쓰기 거부"],
  "legend.failed": ["the store failed", "저장소 오류"], "legend.killed": ["killed", "강제 종료됨"],

  "store.title": ["The store's record", "저장소의 기록"],
  "store.memory": ["One store in this process's memory.", "이 프로세스 메모리의 저장소 하나."],
  "store.memory_quorum": ["Five stores in memory, of which three decide.", "메모리의 저장소 다섯 중 셋이 결정합니다."],
  "store.redis": ["A Redis server.", "Redis 서버 하나."],
  "store.redis_quorum": ["Several Redis servers, of which a majority decides.", "여러 Redis 서버 중 과반수가 결정합니다."],
  "store.redis_acknowledged": ["A Redis server whose grants count once a replica has them.", "복제본이 확인해야 선출이 인정되는 Redis 서버."],
  "store.nobody": ["Nobody leads.", "리더가 없습니다."],
  "store.unknown": ["The store does not answer ({0}): nobody knows who leads.", "저장소가 응답하지 않습니다({0}). 누가 리더인지 아무도 모릅니다."],
  "store.slot": ["slot {0}", "슬롯 {0}"], "store.name": ["name", "이름"], "store.owner": ["owner", "보유자"],
  "store.left": ["{0} left", "{0} 남음"], "store.kept": ["kept by the minimum lease", "최소 리스로 유지 중"],
  "store.node": ["node {0}", "노드 {0}"], "store.up": ["answers", "응답함"], "store.down": ["stopped", "멈춤"],
  "store.stop": ["Stop the store", "저장소 멈추기"], "store.start": ["Start the store", "저장소 다시 시작"],
  "store.forget": ["Lose its memory", "기억 지우기"], "node.stop": ["Stop", "멈추기"], "node.start": ["Start", "시작"], "node.forget": ["Forget", "지우기"],
  "store.hint": ["A store that is stopped is an error for whoever asks, never \"somebody else leads\". One that has lost its memory may elect a second leader while the first still works: then only fencing tokens help.", "멈춘 저장소는 묻는 쪽에 오류이며, \"다른 누군가가 리더\"라는 뜻이 아닙니다. 기억을 잃은 저장소는 첫 리더가 일하는 동안 두 번째 리더를 뽑을 수 있습니다. 그때는 펜싱 토큰만이 도움이 됩니다."],

  "resource.title": ["The guarded work's resource", "보호받는 작업의 자원"],
  "resource.hint": ["Each leader writes here once a second, with its fencing token. The resource remembers the greatest it has seen, and refuses a lower one.", "리더는 1초에 한 번 펜싱 토큰과 함께 여기에 씁니다. 자원은 본 것 중 가장 큰 토큰을 기억하고 더 작은 토큰은 거부합니다."],
  "resource.seen": ["greatest token seen", "본 토큰 중 최댓값"], "resource.none": ["none yet", "아직 없음"],
  "resource.counts": ["writes", "쓰기"], "resource.count": ["{0} accepted, {1} refused", "승인 {0}, 거부 {1}"],
  "writes.caption": ["Last writes", "최근 쓰기"],

  "settings.title": ["Settings", "설정"],
  "settings.hint": ["They count from a candidate's next stand on.", "후보의 다음 출마부터 적용됩니다."],
  "set.work_ms": ["Work time: how long the work takes", "작업 시간: 작업에 걸리는 시간"],
  "set.lease_ms": ["Lease: how long it lives after a grant or an extension", "리스: 부여나 연장 뒤 유효한 시간"],
  "set.wait_ms": ["Wait: how long a candidate waits to be elected", "대기: 선출을 기다리는 시간"],
  "set.min_lease_ms": ["Min lease: kept even when the work ends early", "최소 리스: 작업이 일찍 끝나도 유지하는 시간"],
  "set.pause_ms": ["Pause until the next stand", "다음 출마까지 쉬는 시간"],
  "set.slots": ["Slots: how many may lead at once", "슬롯: 동시에 리더가 될 수 있는 수"],
  "set.candidates": ["Candidates", "후보 수"],
  "set.auto_extend": ["Extend the lease while the work runs (auto_extend)", "작업 중 리스를 연장 (auto_extend)"],
  "set.repeat": ["Stand again after each run", "작업이 끝나면 다시 출마"],
  "set.on_lost": ["When the lease is lost (on_lost)", "리스를 잃으면 (on_lost)"],
  "set.cancel": ["Cancel: the work is dropped", "Cancel: 작업을 버림"],
  "set.notify": ["Notify: the work is told; this one goes on", "Notify: 작업에 알림, 이 작업은 계속함"],
  "set.range": ["Takes {0} to {1}.", "{0}에서 {1}까지 가능합니다."],
  "seconds": ["s", "초"],

  "events.title": ["What happened", "일어난 일"], "events.caption": ["The last events, the newest first", "최근 이벤트, 새것부터"],
  "col.time": ["Time", "시각"], "col.tick": ["Tick", "틱"], "col.candidate": ["Candidate", "후보"], "col.action": ["Action", "동작"],
  "col.fence": ["Fencing token", "펜싱 토큰"], "col.remaining": ["Remaining", "남은 시간"], "col.result": ["Result", "결과"],
  "store": ["store", "저장소"],

  "act.starts": ["starts", "시작"], "act.stops": ["stops", "종료"], "act.stands": ["stands", "출마"], "act.elected": ["elected", "선출"],
  "act.extended": ["extended", "연장"], "act.skipped": ["skipped", "건너뜀"], "act.lost": ["lost", "상실"], "act.released": ["released", "반납"],
  "act.release": ["releases", "반납 시도"], "act.dropped": ["work dropped", "작업 중단"], "act.write": ["writes", "쓰기"], "act.failed": ["store failed", "저장소 오류"],
  "act.gave_up": ["gives up", "포기"], "act.frozen": ["frozen", "정지"], "act.thawed": ["thawed", "해동"], "act.killed": ["killed", "강제 종료"],
  "act.cut": ["cut off", "끊김"], "act.mended": ["reconnected", "다시 연결"], "act.missed": ["events missed", "이벤트 누락"], "act.other": ["other", "기타"],
  "act.store_stopped": ["stopped", "멈춤"], "act.store_started": ["started", "시작"], "act.store_forgot": ["lost its memory", "기억 상실"],

  "res.ok": ["", ""], "res.node": ["node {0}", "노드 {0}"],
  "res.elected": ["leads in slot {0}", "슬롯 {0}의 리더"], "res.held": ["{0} leads", "{0} 후보가 리더"], "res.held.nobody": ["somebody else leads", "다른 누군가가 리더"],
  "res.kept": ["kept until the minimum lease is over", "최소 리스가 끝날 때까지 유지"], "res.released": ["the slot is free", "슬롯이 비었음"],
  "res.accepted": ["accepted", "승인됨"], "res.refused": ["refused: token {0} was seen already", "거부됨: 이미 토큰 {0}을 봄"],
  "res.dropped": ["it had lost its lease: {0}", "리스를 잃음: {0}"], "res.release": ["refused as stale: {0}", "오래된 것이라 거부됨: {0}"],
  "res.failed": ["{0}: {1}", "{0}: {1}"],
  "why.expired": ["its time ran out", "시간이 다 됨"], "why.taken": ["another holds the slot", "다른 후보가 슬롯을 가짐"], "why.deleted": ["its record is gone", "기록이 사라짐"],
  "why.max_tenure": ["longest tenure", "최장 임기"], "why.shut_down": ["shut down", "종료됨"], "why.released": ["released", "반납됨"],
  "why.unreachable": ["unreachable", "연결할 수 없음"], "why.timed_out": ["no answer in time", "시간 안에 응답 없음"], "why.not_ready": ["not ready", "준비 안 됨"],
  "why.read_only": ["read-only", "읽기 전용"], "why.too_few_replicas": ["too few replicas have it", "확인한 복제본이 부족함"], "why.other": ["an error", "오류"],
  "step.connect": ["connect", "연결"], "step.claim": ["claim", "요청"], "step.extend": ["extend", "연장"], "step.release": ["release", "반납"], "step.watch": ["watch", "감시"], "step.inspect": ["inspect", "조회"],

  "say.elected": ["{0} was elected with fencing token {1}.", "{0} 후보가 펜싱 토큰 {1}(으)로 선출되었습니다."],
  "say.lost": ["{0} lost its lease: {1}.", "{0} 후보가 리스를 잃었습니다: {1}."],
  "say.refused": ["A write of {0} was refused: its fencing token is stale.", "{0} 후보의 쓰기가 거부되었습니다. 펜싱 토큰이 오래되었습니다."],
  "say.failed": ["The store failed {0}.", "저장소가 {0}에게 응답하지 못했습니다."],
};

const LANGUAGES = ["en", "ko"];
let column = 0;

export function language() { return LANGUAGES[column]; }

export function speak(lang) {
  column = Math.max(0, LANGUAGES.indexOf(lang));
  document.documentElement.lang = language();
  document.title = `leader: ${t("title")}`;
  for (const element of document.querySelectorAll("[data-t]")) element.textContent = t(element.dataset.t);
  for (const element of document.querySelectorAll("[data-t-label]")) element.setAttribute("aria-label", t(element.dataset.tLabel));
  for (const lang of LANGUAGES) document.getElementById(`lang-${lang}`).setAttribute("aria-pressed", String(lang === language()));
}

/** The text of a key, with its places filled in; a code that has no words stands for itself. */
export function t(key, ...filled) {
  const text = WORDS[key]?.[column] ?? key.split(".").pop();
  return text.replace(/\{(\d)\}/g, (_, place) => filled[place] ?? "");
}

export function seconds(ms) {
  return ms === null || ms === undefined ? "" : `${(ms / 1000).toFixed(ms < 9950 ? 2 : 1)} ${t("seconds")}`;
}

/** What an event's result means, in a few words. */
export function result(event) {
  const { action, result, detail } = event;
  const why = t(`why.${detail ?? result}`);
  switch (action) {
    case "elected": return t("res.elected", event.slot);
    case "skipped": return detail ? t("res.held", detail) : t("res.held.nobody");
    case "released": return t(result === "kept" ? "res.kept" : "res.released");
    case "write": return t(`res.${result}`, detail);
    case "dropped": case "release": return t(`res.${action}`, why);
    case "lost": return t(`why.${result}`);
    case "failed": return t("res.failed", t(`step.${detail}`), t(`why.${result}`));
    case "gave_up": return t(`why.${result}`);
    case "store_stopped": case "store_started": case "store_forgot": return detail ? t("res.node", detail) : "";
    default: return detail ?? t(`res.${result}`);
  }
}
