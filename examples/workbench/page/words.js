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
  "contention.title": ["Contention", "경합"],
  "contention.text": ["Three stand for one lock: one works, one waits in vain and is skipped, one comes after the release.", "셋이 하나의 락을 두고 경쟁합니다. 하나는 일하고, 하나는 헛되이 기다리다 건너뛰고, 하나는 반납 뒤에 옵니다."],
  "contention.1": ["a leads for 8 seconds. b stands after one second and waits for two: somebody else leading is no error, so b will be skipped.", "a가 8초 동안 리더입니다. b는 1초 뒤 출마해 2초를 기다립니다. 다른 후보가 리더인 것은 오류가 아니므로 b는 건너뛰게 됩니다."],
  "contention.2": ["b was skipped; its work did not run. a gives the slot back at 8 seconds, and c stands at 9.", "b는 건너뛰었고 작업은 실행되지 않았습니다. a는 8초에 슬롯을 반납하고 c는 9초에 출마합니다."],
  "contention.3": ["c was elected, with a greater fencing token than a had.", "c가 a보다 큰 펜싱 토큰으로 선출되었습니다."],
  "stale-owner.title": ["Expiry, and a stale owner", "만료와 낡은 보유자"],
  "stale-owner.text": ["Work that takes longer than its lease and does not stop when told (on_lost: Notify): others are elected, and what it still does is refused.", "작업이 리스보다 오래 걸리고 알림을 받아도 멈추지 않습니다(on_lost: Notify). 다른 후보가 선출되고, 옛 보유자가 하는 일은 거절됩니다."],
  "stale-owner.1": ["a leads with a lease of 6 seconds and without extension; its work takes 12. b waits from the 5th second on.", "a의 리스는 6초이고 연장이 없으며 작업은 12초 걸립니다. b는 5초부터 기다립니다."],
  "stale-owner.2": ["a's lease has ended and b is elected. a works on all the same: see its writes bounce off b's fencing token.", "a의 리스가 끝나고 b가 선출되었습니다. 그래도 a는 계속 일합니다. a의 쓰기가 b의 펜싱 토큰에 막히는 것을 보세요."],
  "stale-owner.3": ["c waits from the 10th second on. a's work ends at 12: its release is refused as stale and takes nothing from anybody.", "c는 10초부터 기다립니다. a의 작업은 12초에 끝나며, 반납은 낡은 것으로 거절되어 누구의 것도 빼앗지 않습니다."],
  "stale-owner.4": ["c is elected when b's lease ends; now b is the stale one.", "b의 리스가 끝나자 c가 선출됩니다. 이제 b가 낡은 보유자입니다."],
  "extension.title": ["Automatic extension", "자동 연장"],
  "extension.text": ["The same long work with auto_extend: the lease is extended each third of it, and nobody else gets in.", "같은 긴 작업에 auto_extend를 켭니다. 리스의 3분의 1마다 연장되어 아무도 끼어들지 못합니다."],
  "extension.1": ["a leads with a lease of 6 seconds and extends it every 2. b stands after one second and waits for two.", "a의 리스는 6초이고 2초마다 연장합니다. b는 1초 뒤 출마해 2초를 기다립니다."],
  "extension.2": ["b was skipped. c stands at 7, when the first lease would have been over, and is skipped too.", "b는 건너뛰었습니다. c는 첫 리스가 끝났을 7초에 출마하지만 역시 건너뜁니다."],
  "extension.3": ["a's work ended after 12 seconds and gave the slot back.", "a의 작업이 12초 뒤 끝나고 슬롯을 반납했습니다."],
  "slots.title": ["Capacity: two slots", "수용량: 슬롯 둘"],
  "slots.text": ["At most two lead at once. When both slots are taken, others wait for the first that is given back, or are skipped.", "동시에 둘까지만 리더가 됩니다. 두 슬롯이 차면 나머지는 먼저 반납되는 슬롯을 기다리거나 건너뜁니다."],
  "slots.1": ["a and b lead at once, each in a slot of its own.", "a와 b가 각자의 슬롯에서 동시에 리더입니다."],
  "slots.2": ["Both slots are taken. c waits up to 8 seconds, d only one.", "두 슬롯이 모두 찼습니다. c는 8초까지, d는 1초만 기다립니다."],
  "slots.3": ["d was skipped: the name is saturated. c is elected as soon as a gives its slot back.", "d는 건너뛰었습니다. 자리가 없습니다. a가 슬롯을 반납하면 바로 c가 선출됩니다."],
  "slots.4": ["c leads in the slot that a gave back.", "c가 a가 반납한 슬롯의 리더입니다."],
  "paused-leader.title": ["The paused leader and the fencing token", "멈춘 리더와 펜싱 토큰"],
  "paused-leader.text": ["A leader stands still in the middle of its work, another is elected, and when the first goes on it does not know. Its write bounces.", "리더가 작업 도중 멈춘 사이 다른 후보가 선출됩니다. 다시 움직인 옛 리더는 그것을 모르고, 그 쓰기는 막힙니다."],
  "paused-leader.1": ["a leads and extends its lease; b waits.", "a가 리더이고 리스를 연장합니다. b는 기다립니다."],
  "paused-leader.2": ["a is frozen: nothing of it runs, its extensions neither. When its lease of 4 seconds is over, b is elected.", "a가 정지되었습니다. 연장을 포함해 아무것도 실행되지 않습니다. 4초의 리스가 끝나면 b가 선출됩니다."],
  "paused-leader.3": ["a goes on where it stood and writes. The resource has seen b's greater fencing token and refuses a's.", "a가 멈춘 곳에서 이어서 씁니다. 자원은 b의 더 큰 펜싱 토큰을 보았으므로 a의 쓰기를 거절합니다."],
  "paused-leader.4": ["a was told that its lease is lost; b leads on. With on_lost: Cancel, a's work would not even have written.", "a는 리스를 잃었다는 알림을 받았고 b가 계속 리더입니다. on_lost가 Cancel이었다면 a의 작업은 쓰지도 못했을 것입니다."],
  "failover.title": ["Failover of the server", "서버 장애 조치"],
  "failover.text": ["A Redis primary grants a lease and dies before its replica has it: for a moment there are two holders. The servers are started for it.", "Redis 프라이머리가 리스를 부여한 뒤 복제본에 닿기 전에 죽습니다. 잠시 보유자가 둘이 됩니다. 서버는 이 이야기를 위해 시작됩니다."],
  "failover.1": ["A primary and a replica that lags are started. a is elected, and the primary is killed.", "프라이머리와 뒤처지는 복제본을 시작합니다. a가 선출되고 프라이머리가 죽습니다."],
  "failover.2": ["The replica is promoted. It has never heard of a.", "복제본이 승격됩니다. 복제본은 a를 모릅니다."],
  "failover.3": ["b is elected while a's lease still counts: two holders. Only the fencing token keeps a's writes out.", "a의 리스가 아직 유효한데 b가 선출되었습니다. 보유자가 둘입니다. 펜싱 토큰만이 a의 쓰기를 막습니다."],
  "failover.4": ["At its next extension a was told that the lease is not its own any more, and its work was dropped. b leads.", "다음 연장 때 a는 리스가 더는 자기 것이 아님을 알았고 작업은 중단되었습니다. b가 리더입니다."],
  "failover-replica-ack.title": ["Failover with replica_ack", "replica_ack를 쓴 장애 조치"],
  "failover-replica-ack.text": ["The same accident where a grant counts only once a replica has it: there is never a second holder.", "복제본이 확인해야 선출이 인정되는 경우의 같은 사고입니다. 보유자가 둘이 되는 일이 없습니다."],
  "failover-replica-ack.1": ["A primary and a replica that lags are started. a stands, and no replica acknowledges its grant.", "프라이머리와 뒤처지는 복제본을 시작합니다. a가 출마하지만 어떤 복제본도 확인하지 않습니다."],
  "failover-replica-ack.2": ["a was not elected: an error that says why. The primary is killed, the replica promoted and given a replica of its own.", "a는 선출되지 않았고 이유를 알리는 오류를 받았습니다. 프라이머리가 죽고, 승격된 복제본에 새 복제본이 붙습니다."],
  "failover-replica-ack.3": ["b is elected, and the new primary's replica has its grant. Nobody else ever led.", "b가 선출되었고 새 프라이머리의 복제본이 그것을 갖고 있습니다. 다른 누구도 리더가 된 적이 없습니다."],
  "scenario.unavailable": ["Not here: no Redis server can be started and killed for it.", "여기서는 할 수 없음: 이 이야기를 위해 시작하고 죽일 Redis 서버가 없습니다."],
  "scenario.failure": ["The story could not be played to its end.", "이야기를 끝까지 보여 줄 수 없었습니다."],
  "scenario.end": ["End the story", "이야기 끝내기"],
  "scenario.step": ["step {0} of {1}", "{1}단계 중 {0}단계"],
  "scenario.over": ["over", "끝"], "scenario.failed": ["failed", "실패"],

  "candidates.title": ["Candidates for", "후보: "],
  "start.all": ["Start all", "모두 시작"], "reset": ["Start over", "처음부터"],
  "legend.title": ["What the chart shows", "차트 읽는 법"],
  "candidate": ["candidate {0}", "후보 {0}"], "deeds": ["what candidate {0} can be made to do", "후보 {0} 조작"],

  "phase.down": ["not running", "실행 안 됨"], "phase.connecting": ["connecting", "연결 중"],
  "phase.idle": ["between two stands", "다음 출마 전"], "phase.waiting": ["waits to be elected", "선출을 기다림"],
  "phase.leading": ["leads", "리더"], "phase.believes": ["believes it leads", "이끈다고 믿음"], "phase.stale": ["works without a valid lease", "유효한 리스 없이 작업 중"],
  "flag.frozen": ["frozen", "정지됨"], "flag.cut": ["cut from the store", "저장소와 끊김"],
  "strip": ["Candidate {0}: {1}. Fencing token {2}, {3} left.", "후보 {0}: {1}. 펜싱 토큰 {2}, 남은 시간 {3}."],
  "strip.short": ["Candidate {0}: {1}.", "후보 {0}: {1}."],

  "do.start": ["Start", "시작"], "do.stop": ["Stop", "종료"], "do.freeze": ["Freeze", "정지"], "do.thaw": ["Thaw", "재개"],
  "do.kill": ["Kill", "강제 종료"], "do.cut": ["Cut off", "연결 끊기"], "do.mend": ["Reconnect", "다시 연결"],
  "do.again": ["Stand", "출마"],

  "legend.waiting": ["waits to be elected", "선출을 기다림"],
  "legend.leading": ["leads: its lease is valid", "리더: 리스가 유효함"],
  "legend.stale": ["works without a lease that the store knows", "저장소가 아는 리스 없이 작업 중"],
  "legend.kept": ["the work is over, the minimum lease keeps the slot", "작업은 끝났고 최소 리스가 슬롯을 유지함"],
  "legend.frozen": ["frozen: nothing of it runs", "정지: 아무 작업도 실행되지 않음"],
  "legend.cut": ["cut from the store", "저장소와 끊김"],
  "legend.elected": ["elected", "선출됨"], "legend.extended": ["lease extended", "리스 연장"],
  "legend.lost": ["lease lost", "리스 상실"], "legend.skipped": ["skipped: the wait was over", "건너뜀: 대기 시간이 끝남"],
  "legend.accepted": ["write accepted", "쓰기 승인"], "legend.refused": ["write refused as stale", "낡은 쓰기 거절"],
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
  "store.kept": ["kept by the minimum lease", "최소 리스로 유지 중"],
  "store.node": ["node {0}", "노드 {0}"], "store.up": ["answers", "응답함"], "store.down": ["stopped", "멈춤"],
  "store.stop": ["Stop the store", "저장소 멈추기"], "store.start": ["Start the store", "저장소 다시 시작"],
  "store.forget": ["Lose its memory", "기억 지우기"], "node.stop": ["Stop", "멈추기"], "node.start": ["Start", "시작"], "node.forget": ["Forget", "지우기"],
  "store.hint": ["A store that is stopped is an error for whoever asks, never \"somebody else leads\". One that has lost its memory may elect a second leader while the first still works: then only fencing tokens help.", "멈춘 저장소는 묻는 쪽에 오류이며, \"다른 누군가가 리더\"라는 뜻이 아닙니다. 기억을 잃은 저장소는 첫 리더가 일하는 동안 두 번째 리더를 뽑을 수 있습니다. 그때는 펜싱 토큰만이 도움이 됩니다."],

  "resource.title": ["The guarded work's resource", "보호받는 작업의 자원"],
  "resource.hint": ["Each leader writes here once a second, with its fencing token. The resource remembers the greatest it has seen, and refuses a lower one.", "리더는 1초에 한 번 펜싱 토큰과 함께 여기에 씁니다. 자원은 본 것 중 가장 큰 토큰을 기억하고 더 작은 토큰은 거절합니다."],
  "resource.seen": ["greatest token seen", "본 토큰 중 최댓값"], "resource.none": ["none yet", "아직 없음"],
  "resource.counts": ["writes", "쓰기"], "resource.count": ["{0} accepted, {1} refused", "승인 {0}, 거절 {1}"],
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
  "set.other": ["{0} was not taken: with it, “{1}” takes {2} to {3}. Change that first.", "{0}로 바꿀 수 없습니다. 그러면 ‘{1}’ 설정은 {2}에서 {3}까지만 가능합니다. 그 설정을 먼저 바꾸세요."],
  "seconds": ["s", "초"],

  "ticks.title": ["The same engine, in ticks", "같은 엔진을 틱 단위로"],
  "ticks.intro": ["Nothing here is drawn up: the engine itself plays the plan, on a clock that stands still between two ticks. The same plan always gives the same table.", "여기서 꾸며낸 것은 없습니다. 두 틱 사이에 멈추는 시계 위에서 엔진이 직접 계획을 실행합니다. 같은 계획은 언제나 같은 표를 만듭니다."],
  "ticks.plan": ["Plan", "계획"], "ticks.play": ["Play", "재생"], "ticks.pause": ["Pause", "일시정지"], "ticks.step": ["Step", "한 단계"], "ticks.reset": ["Reset", "처음으로"],
  "ticks.before": ["before the first tick", "첫 틱 이전"], "ticks.now": ["tick {0}", "틱 {0}"], "ticks.over": ["tick {0}: nothing more happens", "틱 {0}: 더 일어날 일이 없음"],
  "ticks.numbers": ["In ticks: lease {0}, work {1}, wait {2}, min lease {3}. Slots {4}; automatic extension: {5}; when the lease is lost: {6}.", "틱 단위: 리스 {0}, 작업 {1}, 대기 {2}, 최소 리스 {3}. 슬롯 {4}, 자동 연장: {5}, 리스를 잃으면: {6}."],
  "ticks.continue": ["the work goes on", "작업을 계속함"], "ticks.stop": ["the work is dropped", "작업을 버림"],
  "ticks.caption": ["What has happened so far", "지금까지 일어난 일"],
  "ticks.text": ["The same as text: cargo run --example timeline -- {0}", "같은 내용을 글로: cargo run --example timeline -- {0}"],
  "yes": ["yes", "예"], "no": ["no", "아니요"],
  "plan.contention": ["contention", "경합"], "plan.expiry": ["expiry and a stale owner", "만료와 낡은 보유자"], "plan.extension": ["automatic extension", "자동 연장"],
  "plan.slots": ["two slots", "슬롯 둘"], "plan.pause": ["the paused leader", "멈춘 리더"], "plan.min-lease": ["minimum lease", "최소 리스"],
  "events.title": ["What happened", "일어난 일"], "events.caption": ["The last events, the newest first", "최근 이벤트, 새것부터"],
  "col.time": ["Time", "시각"], "col.tick": ["Tick", "틱"], "col.candidate": ["Candidate", "후보"], "col.action": ["Action", "동작"], "col.slot": ["Slot", "슬롯"],
  "col.fence": ["Fencing token", "펜싱 토큰"], "col.remaining": ["Remaining", "남은 시간"], "col.result": ["Result", "결과"],
  "store": ["store", "저장소"],

  "act.starts": ["starts", "시작"], "act.stops": ["stops", "종료"], "act.stands": ["stands", "출마"], "act.elected": ["elected", "선출"],
  "act.extended": ["extended", "연장"], "act.skipped": ["skipped", "건너뜀"], "act.lost": ["lost", "상실"], "act.released": ["released", "반납"],
  "act.release": ["releases", "반납 시도"], "act.dropped": ["work dropped", "작업 중단"], "act.write": ["writes", "쓰기"], "act.failed": ["store failed", "저장소 오류"],
  "act.gave_up": ["gives up", "포기"], "act.frozen": ["frozen", "정지"], "act.thawed": ["thawed", "재개"], "act.killed": ["killed", "강제 종료"],
  "act.cut": ["cut off", "끊김"], "act.mended": ["reconnected", "다시 연결"], "act.missed": ["events missed", "이벤트 누락"], "act.other": ["other", "기타"],
  "act.store_stopped": ["stopped", "멈춤"], "act.store_started": ["started", "시작"], "act.store_forgot": ["lost its memory", "기억 상실"],

  "res.ok": ["", ""], "res.node": ["node {0}", "노드 {0}"],
  "res.elected": ["leads in slot {0}", "슬롯 {0}의 리더"], "res.held": ["{0} leads", "{0} 후보가 리더"], "res.held.nobody": ["somebody else leads", "다른 누군가가 리더"],
  "res.kept": ["kept until the minimum lease is over", "최소 리스가 끝날 때까지 유지"], "res.released": ["the slot is free", "슬롯이 비었음"],
  "res.accepted": ["accepted", "승인됨"], "res.stale": ["refused", "거절됨"], "res.refused": ["refused: token {0} was seen already", "거절됨: 이미 토큰 {0}을 봄"],
  "res.dropped": ["it had lost its lease: {0}", "리스를 잃음: {0}"], "res.release": ["refused as stale: {0}", "낡은 것이라 거절됨: {0}"],
  "res.failed": ["{0}: {1}", "{0}: {1}"],
  "why.expired": ["its time ran out", "시간이 다 됨"], "why.taken": ["another holds the slot", "다른 후보가 슬롯을 가짐"], "why.deleted": ["its record is gone", "기록이 사라짐"],
  "why.max_tenure": ["longest tenure", "최장 임기"], "why.shut_down": ["shut down", "종료됨"], "why.released": ["released", "반납됨"],
  "why.unreachable": ["unreachable", "연결할 수 없음"], "why.timed_out": ["no answer in time", "시간 안에 응답 없음"], "why.not_ready": ["not ready", "준비 안 됨"],
  "why.read_only": ["read-only", "읽기 전용"], "why.too_few_replicas": ["too few replicas have it", "확인한 복제본이 부족함"],
  "why.out_of_memory": ["out of memory", "메모리 부족"], "why.denied": ["access denied", "접근이 거절됨"],
  "why.wrong_type": ["something else stands where the record would be", "기록이 있을 자리에 다른 것이 있음"],
  "why.malformed_reply": ["an answer that makes no sense", "알 수 없는 응답"], "why.options": ["options that cannot be honoured", "지킬 수 없는 설정"], "why.other": ["an error", "오류"],
  "step.connect": ["connect", "연결"], "step.claim": ["claim", "요청"], "step.extend": ["extend", "연장"], "step.release": ["release", "반납"], "step.watch": ["watch", "감시"], "step.inspect": ["inspect", "조회"], "step.evict": ["evict", "회수"],

  "refusal.not_running": ["That candidate is not running; start it first.", "실행 중인 후보가 아닙니다. 먼저 시작하세요."],
  "refusal.not_frozen": ["The candidate did not stand still; try again.", "후보가 정지하지 않았습니다. 다시 시도하세요."],
  "refusal.no_place": ["The bench has no such candidate now; raise their number first.", "지금은 그런 후보가 없습니다. 먼저 후보 수를 늘리세요."],
  "refusal.no_thread": ["The machine has no room for another candidate.", "컴퓨터에 후보를 더 시작할 여유가 없습니다."],
  "refusal.not_forgotten": ["A server has kept its records:", "기록이 그대로 남은 서버가 있습니다:"],
  "refusal.not_emptied": ["Started over, but a server has kept its records:", "처음부터 다시 시작했지만, 기록이 그대로 남은 서버가 있습니다:"],
  "refusal.no_node": ["The store has no such node now.", "지금 저장소에는 그런 노드가 없습니다."],
  "refusal.no_servers": ["No Redis server can be started and killed for it here.", "여기서는 이 이야기를 위해 시작하고 죽일 Redis 서버가 없습니다."],
  "refusal.servers_failed": ["Its servers could not go on.", "이야기의 서버가 계속 돌 수 없었습니다."],
  "refusal.refused": ["A setting of it was refused.", "이야기의 설정이 거절되었습니다."],
  "refusal.waited_in_vain": ["What it waited for did not come.", "기다리던 일이 일어나지 않았습니다."],
  "refusal.too_many_pages": ["too many pages are open; close one of them", "열린 페이지가 너무 많습니다. 하나를 닫으세요"],

  "say.elected": ["{0} was elected with fencing token {1}.", "{0} 후보가 펜싱 토큰 {1}(으)로 선출되었습니다."],
  "say.lost": ["{0} lost its lease: {1}.", "{0} 후보가 리스를 잃었습니다: {1}."],
  "say.refused": ["A write of {0} was refused: its fencing token is stale.", "{0} 후보의 쓰기가 거절되었습니다. 펜싱 토큰이 낡았습니다."],
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

/** The words of a code of that group; what is no code is free text, and stands as it is. */
export function word(group, code) {
  return typeof code === "string" && /^[a-z_]+$/.test(code) ? t(`${group}.${code}`) : String(code ?? "");
}

/** Why the server does not do something, in the page's words; nothing where they do not have its code. */
export function reason(code) {
  return WORDS[`refusal.${code}`] ? t(`refusal.${code}`) : "";
}

/** What the server has refused, in the page's words where they have its code, and otherwise in the server's own. */
export function complaint({ code, error }) {
  return reason(code) || (error ?? "");
}

/** Refusals of which only the server's own words say who or what is meant. */
const PARTICULAR = ["not_forgotten", "not_emptied", "no_thread", "no_servers"];

/** What is to be quoted after a complaint. */
export function particulars({ code, error }) {
  return PARTICULAR.includes(code) ? error : null;
}

/** What is to be quoted after a failure: the library's own words, where its code says next to nothing. */
export function unsaid(code, message) {
  return code === "options" || code === "other" ? message : null;
}

/** What an event's result means, in a few words. */
export function result(event) {
  const { action, result, detail } = event;
  const why = word("why", detail ?? result);
  switch (action) {
    case "elected": return t("res.elected", event.slot);
    case "skipped": return detail ? t("res.held", detail) : t("res.held.nobody");
    case "released": return t(result === "kept" ? "res.kept" : "res.released");
    case "write": return t(`res.${result}`, detail);
    case "dropped": case "release": return t(`res.${action}`, why);
    case "lost": case "gave_up": return word("why", result);
    case "failed": return t("res.failed", word("step", detail), word("why", result));
    case "store_stopped": case "store_started": case "store_forgot": return detail ? t("res.node", detail) : "";
    default: return detail ?? word("res", result);
  }
}
