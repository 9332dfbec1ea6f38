//! The wrong changes, as exact text and what stands in its place.

/// A wrong change to one file.
pub(crate) struct Wrong {
    /// What is wrong, for people.
    pub(crate) name: &'static str,
    /// The file, from the workspace's root.
    pub(crate) file: &'static str,
    /// Text that stands there once, and its replacement.
    pub(crate) changes: &'static [(&'static str, &'static str)],
}

pub(crate) const WRONG: &[Wrong] = &[
    Wrong {
        name: "drift ignored",
        file: "leader-core/src/engine/tenure.rs",
        changes: &[("    lease.saturating_sub(drift(lease))", "    lease")],
    },
    Wrong {
        name: "deadline taken after the reply of a claim",
        file: "leader-core/src/engine/acquire.rs",
        changes: &[(
            "let times = Times::new(lease, sent, now);",
            "let times = Times::new(lease, sent.max(now), now);",
        )],
    },
    Wrong {
        name: "deadline taken after the reply of an extension",
        file: "leader-core/src/engine/extension.rs",
        changes: &[(
            "tenure.extended(sent, request.lease)",
            "tenure.extended(Instant::now(), request.lease)",
        )],
    },
    Wrong {
        name: "failed extension taken for a good one",
        file: "leader-core/src/engine/extension.rs",
        changes: &[(
            "self.failed(Step::Extend, tenure, &error);\n",
            "self.failed(Step::Extend, tenure, &error);\n                    tenure.extended(sent, request.lease);\n",
        )],
    },
    Wrong {
        name: "\"not yours\" taken for a passing failure",
        file: "leader-core/src/engine/extension.rs",
        changes: &[(
            "                    tenure.lose(reason);\n                    Extended::Lost\n",
            "                    let _ = reason;\n                    Extended::Failed(unanswered())\n",
        )],
    },
    Wrong {
        name: "late extension revives a lost lease",
        file: "leader-core/src/engine/tenure.rs",
        changes: &[(
            "        let held = self.phase() == Phase::Held;\n",
            "        let held = true;\n        self.phase.store(HELD, Ordering::Release);\n",
        )],
    },
    Wrong {
        name: "poll not guarded by the clock",
        file: "leader-core/src/guard.rs",
        changes: &[(
            "    let phase = tenure.phase_at(now);\n    if tenure.on_lost",
            "    let _ = now;\n    let phase = tenure.phase_now();\n    if tenure.on_lost",
        )],
    },
    Wrong {
        name: "lease not looked at when the body ends",
        file: "leader-core/src/guard.rs",
        changes: &[(
            "Self::Returned(output) => Ok(valid.map(|()| output).map_err(lost)),",
            "Self::Returned(output) => Ok(valid.map_or(Ok(()), Ok).map(|()| output).map_err(lost)),",
        )],
    },
    Wrong {
        name: "ambiguous claim not undone",
        file: "leader-core/src/engine/acquire.rs",
        changes: &[(
            "        if self.uncertain {\n            let until",
            "        if self.uncertain && self.deadline < self.last_sent {\n            let until",
        )],
    },
    Wrong {
        name: "ambiguous claim undone without a mark",
        file: "leader-core/src/engine/release.rs",
        changes: &[(
            "let release = Release::abandoned(name.clone(), token, MARK);",
            "let mut release = Release::abandoned(name.clone(), token, MARK);\n        release.mark = None;",
        )],
    },
    Wrong {
        name: "fresh token for each claim of an attempt",
        file: "leader-core/src/engine/acquire.rs",
        changes: &[(
            "        let earlier = std::mem::replace(&mut self.uncertain, true);\n",
            "        let earlier = std::mem::replace(&mut self.uncertain, true);\n        self.claim.token = engine.tokens.fresh(sent);\n",
        )],
    },
    Wrong {
        name: "hint required to wake",
        file: "leader-core/src/engine/queue.rs",
        changes: &[(
            "let wake = (full.until + jitter).min(deadline);",
            "let wake = deadline;",
        )],
    },
    Wrong {
        name: "no last claim at the deadline",
        file: "leader-core/src/engine/acquire.rs",
        changes: &[(
            "            if talk.full.is_none() || last {\n",
            "            if last && let Some(full) = &talk.full {\n                return Ok(skipped(full));\n            }\n            if talk.full.is_none() || last {\n",
        )],
    },
    Wrong {
        name: "extension not stopped before release",
        file: "leader-core/src/engine/release.rs",
        changes: &[(
            "        let _ = tokio::time::timeout(limit, tenure.gate.acquire()).await;\n",
            "        let _ = limit;\n",
        )],
    },
    Wrong {
        name: "run returns before its release",
        file: "leader-core/src/guard.rs",
        changes: &[(
            "Either::Left(lease.end(now).map(|_| concluded))",
            "drop(lease);\n                Either::Left(ready(concluded).map(|it| it))",
        )],
    },
    Wrong {
        name: "release given up after one try",
        file: "leader-core/src/engine/release.rs",
        changes: &[(
            "            if Instant::now() + pause >= until {\n",
            "            if Instant::now() + pause >= until || pause > Duration::ZERO {\n",
        )],
    },
    Wrong {
        name: "min lease dropped",
        file: "leader-core/src/engine/release.rs",
        changes: &[(".keeping(tenure.keep(now));", ".keeping(Duration::ZERO);")],
    },
    Wrong {
        name: "next claim does not wait for the release under way",
        file: "leader-core/src/engine/acquire.rs",
        changes: &[
            (
                "        let settled = engine.settlements.settled(&self.claim.name);\n",
                "        let settled = std::future::ready(engine.settlements.settled(&self.claim.name)).map(drop);\n",
            ),
            (
                "use std::time::Duration;\n",
                "use futures::FutureExt;\nuse std::time::Duration;\n",
            ),
        ],
    },
    Wrong {
        name: "claim without waiting does not wait for the release under way",
        file: "leader-core/src/engine/acquire.rs",
        changes: &[("            || self.settlements.has(name)\n", "")],
    },
    Wrong {
        name: "release without waiting overtakes an extension",
        file: "leader-core/src/engine/release.rs",
        changes: &[(
            "        if tenure.gate.available_permits() == 0 {\n",
            "        if tenure.gate.available_permits() == 0 && false {\n",
        )],
    },
    Wrong {
        name: "grant of one of several slots taken for \"full\"",
        file: "leader-core/src/engine/acquire.rs",
        changes: &[(
            "        (self.claim.slots == 1).then(|| Full {",
            "        (self.claim.slots >= 1).then(|| Full {",
        )],
    },
    Wrong {
        name: "nested run stands for itself",
        file: "leader-core/src/scope.rs",
        changes: &[(
            "tenure.elector == elector && tenure.slots == slots",
            "tenure.elector != elector && tenure.slots == slots",
        )],
    },
    Wrong {
        name: "grant accepted although its lease is over",
        file: "leader-core/src/engine/acquire.rs",
        changes: &[(
            "if now >= sent + validity(self.claim.lease) =>",
            "if now >= sent + validity(self.claim.lease) * 1000 =>",
        )],
    },
    Wrong {
        name: "lease given up when one extension fails",
        file: "leader-core/src/engine/extension.rs",
        changes: &[(
            "self.failed(Step::Extend, tenure, &error);\n",
            "self.failed(Step::Extend, tenure, &error);\n                    tenure.lose(crate::LossReason::Expired);\n",
        )],
    },
    Wrong {
        name: "max tenure forgotten",
        file: "leader-core/src/engine/tenure.rs",
        changes: &[(
            "        self.last_end.map_or(deadline, |last| deadline.min(last))",
            "        deadline",
        )],
    },
    Wrong {
        name: "body still there when the slot is given back",
        file: "leader-core/src/engine/shutdown.rs",
        changes: &[(
            "            tenure.stop();\n        }\n",
            "            tenure.stop();\n            self.end_behind(&tenure);\n        }\n",
        )],
    },
    Wrong {
        name: "keeper stays after its last lease",
        file: "leader-core/src/engine/keeper.rs",
        changes: &[(
            "        if next.is_none() && requests.is_empty() {\n",
            "        if next.is_none() && requests.is_empty() && false {\n",
        )],
    },
    Wrong {
        name: "place in the queue not left",
        file: "leader-core/src/engine/queue.rs",
        changes: &[(
            "if Arc::strong_count(&self.queue) == 2",
            "if Arc::strong_count(&self.queue) == 1",
        )],
    },
    Wrong {
        name: "loss told again as a release",
        file: "leader-core/src/engine/release.rs",
        changes: &[(
            "            _ if tenure.phase_now() != Phase::Closed => {}\n",
            "            ReleaseReply::NotHeld(_) if tenure.phase_now() != Phase::Closed => {}\n",
        )],
    },
    Wrong {
        name: "store: token not compared at release",
        file: "leader-core/src/local/store.rs",
        changes: &[(
            "let Some(slot) = record.slots.of(release.token) else {",
            "let Some(slot) = release.slot.filter(|own| record.slots.get(*own).is_some()).or(record.slots.of(release.token)) else {",
        )],
    },
    Wrong {
        name: "store: token not compared at extension",
        file: "leader-core/src/local/store.rs",
        changes: &[(
            "                Some(entry) if entry.token == Some(extension.token) => {\n                    entry.ends",
            "                Some(entry) if entry.token.is_some() => {\n                    entry.ends",
        )],
    },
    Wrong {
        name: "store: fencing without the time term",
        file: "leader-core/src/local/store.rs",
        changes: &[
            (
                "        self.last = self.time(now).max(self.last + 1);",
                "        let _ = now;\n        self.last += 1;",
            ),
            (
                "            self.last = time.max(self.last + 1);\n",
                "            let _ = time;\n            self.last += 1;\n",
            ),
        ],
    },
    Wrong {
        name: "store: dead token not remembered",
        file: "leader-core/src/local/store.rs",
        changes: &[(
            "                record.mark(release.token, now + bounded(mark));",
            "                record.mark(release.token, now + bounded(mark) / 1_000_000);",
        )],
    },
    Wrong {
        name: "store: claim lengthens another's lease",
        file: "leader-core/src/local/store.rs",
        changes: &[(
            "if let Some((slot, mut entry)) = record.take(claim.token) {",
            "let of = record.slots.iter().find(|(_, entry)| entry.node_id == claim.node_id);\n            let other = of.and_then(|(_, entry)| entry.token);\n            if let Some((slot, mut entry)) = record.take(other.unwrap_or(claim.token)) {",
        )],
    },
    Wrong {
        name: "quorum: majority off by one",
        file: "leader-core/src/quorum/nodes.rs",
        changes: &[("        self.0 / 2 + 1\n", "        (self.0 / 2).max(1)\n")],
    },
    Wrong {
        name: "quorum: greatest number not written back",
        file: "leader-core/src/quorum/claim.rs",
        changes: &[(
            "return self.agreed(slot).map(|fence| Outcome::Granted {",
            "return self.greatest(slot).map(|fence| Outcome::Granted {",
        )],
    },
    Wrong {
        name: "quorum: proposed number taken for agreed",
        file: "leader-core/src/quorum/claim.rs",
        changes: &[(
            "numbers().find(|number| agree(number) >= self.shared.size.majority())",
            "numbers().find(|number| *number == self.put.proposed.get() || agree(number) >= self.shared.size.majority())",
        )],
    },
    Wrong {
        name: "quorum: node that has forgotten takes a number of old",
        file: "tests/sim/src/model.rs",
        changes: &[(
            "if record.last_revision == 0 {",
            "if record.last_revision == u64::MAX {",
        )],
    },
    Wrong {
        name: "quorum: minority not freed",
        file: "leader-core/src/quorum/claim.rs",
        changes: &[(
            "} else if granted.contains(&node) {",
            "} else if granted.contains(&node) && open.contains(node) {",
        )],
    },
    Wrong {
        name: "quorum: slots not compared",
        file: "leader-core/src/quorum/claim.rs",
        changes: &[
            (
                "        let of = |slot| self.granted().filter(|(_, of, ..)| *of == slot).count();\n",
                "        let of = |_: u32| self.granted().count();\n",
            ),
            (
                ".filter(|(_, of, _, awaited)| *of == slot && !awaited);",
                ".filter(|(_, of, _, awaited)| *of <= slot.max(*of) && !awaited);",
            ),
            (
                "                && *of == slot\n                && *fence < target",
                "                && *of <= slot.max(*of)\n                && *fence < target",
            ),
        ],
    },
    Wrong {
        name: "quorum: extended by a minority",
        file: "leader-core/src/quorum/extend.rs",
        changes: &[(
            "        self.extended.len() >= self.shared.size.majority()\n",
            "        self.extended.len() >= self.shared.size.spare().max(1)\n",
        )],
    },
    Wrong {
        name: "quorum: record given again without a majority",
        file: "leader-core/src/quorum/extend.rs",
        changes: &[(
            "        if tally.is_ours() {\n            give_again",
            "        if !tally.not_held.is_empty() {\n            give_again",
        )],
    },
    Wrong {
        name: "quorum: dead token used again",
        file: "leader-core/src/quorum/seats.rs",
        changes: &[(
            "            token: derived(claim.token, table.drawn),\n",
            "            token: derived(claim.token, 0),\n",
        )],
    },
];
