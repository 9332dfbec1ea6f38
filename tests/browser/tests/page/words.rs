//! Each language has words for whatever can happen, and what is on the page changes with the language.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use leader_browser_tests::{Page, Window, on_the_page};
use serde_json::json;

/// Where the library's codes are.
const ERRORS: &str = include_str!("../../../../leader-core/src/error.rs");

/// Each code that `as_str` of this type gives.
fn codes(kind: &str) -> Vec<&'static str> {
    let (_, from) = ERRORS
        .split_once(&format!("impl {kind} {{"))
        .expect("the type");
    let (_, from) = from.split_once("fn as_str").expect("its codes");
    let (body, _) = from.split_once("\n    }\n").expect("their end");
    let codes: Vec<_> = body.split('"').skip(1).step_by(2).collect();
    assert!(codes.len() > 5, "{codes:?}");
    codes
}

/// Each code of a refusal in the workbench's source.
fn refusals() -> BTreeSet<String> {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/workbench/src");
    let mut folders = vec![PathBuf::from(source)];
    let mut codes = BTreeSet::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("the source") {
            let path = entry.expect("a file").path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = fs::read_to_string(&path).expect("a text");
            for from in text.split("Undone::new(").skip(1) {
                // No other way to write it: a code that stands elsewhere would not be found.
                let code = from.trim_start().strip_prefix('"').expect("a code");
                let (code, _) = code.split_once('"').expect("its end");
                codes.insert(code.to_owned());
            }
        }
    }
    assert!(codes.contains("not_running"), "{codes:?}");
    assert!(codes.contains("too_many_pages"), "{codes:?}");
    codes
}

fn is_korean(text: &str) -> bool {
    text.contains(|letter| ('\u{ac00}'..='\u{d7a3}').contains(&letter))
}

#[tokio::test]
async fn each_failure_each_loss_and_each_refusal_has_words_in_both_languages() {
    on_the_page(&[], Window::WIDE, async |page| {
        let reasons = [codes("BackendKind"), codes("LossReason")].concat();
        let reasons = reasons.iter().map(|code| format!("why.{code}"));
        let refusals = refusals().into_iter().map(|code| format!("refusal.{code}"));
        let keys: Vec<String> = reasons.chain(refusals).collect();
        let script = format!(
            "const {{ t, speak }} = await import('/words.js');
             return {}.map((key) => ['ko', 'en'].map((lang) => {{ speak(lang); return t(key) }}))",
            json!(keys)
        );
        let words: Vec<[String; 2]> =
            serde_json::from_value(page.ask(&script).await).expect("pairs of text");
        for (key, [korean, english]) in keys.iter().zip(words) {
            assert!(is_korean(&korean), "{key}: {korean}");
            assert!(
                !english.is_empty() && !english.contains('_') && !is_korean(&english),
                "{key}: {english}"
            );
        }
    })
    .await;
}

#[tokio::test]
async fn what_has_no_code_of_its_own_is_quoted() {
    on_the_page(&[], Window::WIDE, async |page| {
        let script = "
            const { default: live, take } = await import('/live.js');
            const words = 'the URL has no scheme';
            const more = { slot: null, fence: null, remaining_ms: null };
            const failed = (result, message) => ({ ...more, seq: 0, at_ms: 0, candidate: 'a', action: 'failed', result, detail: 'connect', message });
            const said = (place) => [place.textContent, place.querySelector('q[lang=en]')?.textContent];
            const record = { error: 'options', message: words, holders: null };
            take({ state: { ...live.state, record }, events: [failed('options', words), failed('unreachable', words)], missed: 0 }, false);
            return [...['options', 'unreachable'].map((code) => document.querySelector(`#events [data-result=${code}]`).lastChild),
              document.getElementById('record-problem')].map(said)";
        assert_eq!(
            page.ask(script).await,
            json!([
                [
                    "connect: options that cannot be honoured the URL has no scheme",
                    "the URL has no scheme"
                ],
                ["connect: unreachable", null],
                [
                    "The store does not answer (options that cannot be honoured): nobody knows who leads. the URL has no scheme",
                    "the URL has no scheme"
                ],
            ])
        );
    })
    .await;
}

#[tokio::test]
async fn nothing_is_no_code() {
    on_the_page(&[], Window::WIDE, async |page| {
        let script = "const { word } = await import('/words.js');
            return [word('why', null), word('why', undefined), word('why', 'other'), word('why', 'Pass one.')]";
        assert_eq!(
            page.ask(script).await,
            json!(["", "", "an error", "Pass one."])
        );
    })
    .await;
}

#[tokio::test]
async fn a_refused_setting_is_said_in_the_language_in_use() {
    on_the_page(&[], Window::WIDE, async |page| {
        page.click("lang-ko").await;
        page.fill("lease_ms-number", "61").await;
        page.fill("slots-number", "5").await;
        for (id, korean) in [
            ("lease_ms-refusal", "0.01 초에서 60.0 초까지 가능합니다."),
            ("slots-refusal", "1에서 4까지 가능합니다."),
        ] {
            page.says(id, korean).await;
            let text = page.find(id).await.text().await;
            assert_eq!(text.expect("a text"), korean);
        }
        page.click("lang-en").await;
        page.says("lease_ms-refusal", "Takes 0.01 s to 60.0 s")
            .await;
        page.says("slots-refusal", "Takes 1 to 4").await;
        // The browser tells the console of each answer that is an error.
        page.forgive().await;
    })
    .await;
}

/// Lets the workbench answer the page's next request with this refusal.
async fn refused(page: &Page, body: serde_json::Value) {
    page.ask(&format!(
        "const real = window.fetch;
         window.fetch = async () => {{ window.fetch = real; return new Response(JSON.stringify({body}), {{ status: 409 }}) }};
         const {{ post }} = await import('/dom.js'); await post('/api/candidates/a', {{ action: 'stop' }})"
    ))
    .await;
}

#[tokio::test]
async fn a_refusal_with_a_code_is_said_in_the_language_in_use() {
    on_the_page(&[], Window::WIDE, async |page| {
        page.click("lang-ko").await;
        let error = "candidate `a` is not running; start it first";
        refused(page, json!({ "error": error, "code": "not_running" })).await;
        page.says("problem", "실행 중인 후보가 아닙니다").await;
        page.click("lang-en").await;
        page.says("problem", "That candidate is not running").await;
        refused(
            page,
            json!({ "error": "no thread could be started", "code": "unheard_of" }),
        )
        .await;
        page.says("problem", "no thread could be started").await;
        // No field of the page's is called so.
        let error = "`node` must be a whole number from 0 to 0";
        refused(page, json!({ "error": error, "field": "node" })).await;
        page.says("problem", error).await;
    })
    .await;
}

#[tokio::test]
async fn what_keeps_its_records_is_named_in_the_words_of_the_server() {
    on_the_page(&[], Window::WIDE, async |page| {
        page.click("lang-ko").await;
        let error = "node 2 has not lost its memory: no answer";
        refused(page, json!({ "error": error, "code": "not_forgotten" })).await;
        page.says("problem", "기록이 그대로 남은 서버가 있습니다")
            .await;
        let quoted = "return document.querySelector('#problem q[lang=en]').textContent";
        assert_eq!(page.ask(quoted).await, error);
        page.click("lang-en").await;
        page.says("problem", "A server has kept its records: ")
            .await;
        assert_eq!(page.ask(quoted).await, error);
    })
    .await;
}

#[tokio::test]
async fn a_switch_that_is_refused_has_no_place_of_its_own_to_say_so() {
    on_the_page(&[], Window::WIDE, async |page| {
        page.ask(
            "const real = window.fetch;
             const answer = JSON.stringify({ error: '`repeat` must be true or false', field: 'repeat' });
             window.fetch = async () => { window.fetch = real; return new Response(answer, { status: 422 }) }",
        )
        .await;
        page.click("repeat").await;
        page.says("problem", "`repeat` must be true or false").await;
    })
    .await;
}

#[tokio::test]
async fn a_story_that_cannot_be_played_is_said_in_korean_with_the_reason_as_it_is() {
    on_the_page(&[], Window::WIDE, async |page| {
        page.click("lang-ko").await;
        let script = "
            const { makeScenarios, sayScenarios, showScenario } = await import('/scenarios.js');
            makeScenarios(document.getElementById('scenarios'), [{ name: 'failover', unavailable: 'no redis-server' }]);
            sayScenarios();
            showScenario({ name: 'failover', step: 1, steps: 4, over: true, failure: 'it did not start', failure_code: 'servers_failed' });
            return ['scenario-failover-text', 'scenario-caption'].map((id) => document.getElementById(id))
              .map((place) => [place.firstChild.textContent, place.querySelector('[lang=en]')?.textContent])";
        let said: Vec<(String, Option<String>)> =
            serde_json::from_value(page.ask(script).await).expect("pairs of text");
        let quoted: Vec<_> = said.iter().map(|(_, quoted)| quoted.as_deref()).collect();
        assert_eq!(quoted, [Some("no redis-server"), Some("it did not start")]);
        assert!(said[0].0.contains("여기서는 할 수 없음"), "{said:?}");
        assert!(said[1].0.contains("이야기를 끝까지"), "{said:?}");
        assert!(said[1].0.contains("이야기의 서버가"), "{said:?}");
    })
    .await;
}

#[tokio::test]
async fn both_modes_call_the_same_thing_by_the_same_korean_word() {
    on_the_page(&[], Window::WIDE, async |page| {
        let script = "
            const { t, speak } = await import('/words.js');
            speak('ko');
            return [t('act.thawed'), t('legend.refused'), t('res.stale')]";
        // As `Action::words` and `Row::result` have them.
        assert_eq!(
            page.ask(script).await,
            json!(["재개", "낡은 쓰기 거절", "거절됨"])
        );
        for word in ["거부", "해동", "오래된"] {
            let has =
                format!("return (await (await fetch('/words.js')).text()).includes('{word}')");
            assert_eq!(page.ask(&has).await, false, "{word}");
        }
    })
    .await;
}
