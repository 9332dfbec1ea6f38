//! The words of tables, in English and Korean.

use super::plan::{OnLost, Plan};
use super::row::{Action, Row};

/// A language of the workbench.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Language {
    /// English.
    #[default]
    English,
    /// Korean.
    Korean,
}

impl Language {
    /// The language of that tag, `en` or `ko`.
    #[must_use]
    pub fn tagged(tag: &str) -> Option<Self> {
        match tag {
            "en" => Some(Self::English),
            "ko" => Some(Self::Korean),
            _ => None,
        }
    }

    /// The text of this language, of an English and a Korean one.
    pub(super) fn of<T>(self, [english, korean]: [T; 2]) -> T {
        match self {
            Self::English => english,
            Self::Korean => korean,
        }
    }
}

impl Action {
    /// The action in a word or two.
    #[must_use]
    pub fn words(self, language: Language) -> &'static str {
        language.of(match self {
            Self::Frozen => ["frozen", "정지"],
            Self::Thawed => ["thawed", "재개"],
            Self::Lost => ["lost", "상실"],
            Self::WroteFirst | Self::WroteLast => ["writes", "쓰기"],
            Self::FirstWriteRefused | Self::LastWriteRefused => ["write refused", "쓰기 거절"],
            Self::Released => ["released", "반납"],
            Self::ReleaseRefused => ["release refused", "반납 거절"],
            Self::Elected => ["elected", "선출"],
            Self::Extended => ["extended", "연장"],
            Self::Waits => ["waits", "대기"],
            Self::Skipped => ["skipped", "건너뜀"],
            Self::Failed => ["failed", "실패"],
        })
    }
}

impl Row {
    /// What came of it, in a sentence without a subject.
    #[must_use]
    pub fn result(&self, language: Language) -> String {
        language.of(self.results())
    }

    fn results(&self) -> [String; 2] {
        let of = |english: &str, korean: &str| [english.to_owned(), korean.to_owned()];
        match self.action {
            Action::Frozen => of("none of its tasks runs", "모든 태스크가 멈춘다"),
            Action::Thawed => of("goes on where it was", "멈춘 곳에서 이어 간다"),
            Action::Lost => self.lost(),
            Action::WroteFirst | Action::WroteLast => {
                of("accepted by the resource", "자원이 받아들임")
            }
            Action::FirstWriteRefused | Action::LastWriteRefused => self.refused(),
            Action::Released => match self.remaining {
                None | Some(0) => of("the slot is free", "슬롯이 비었다"),
                Some(left) => {
                    let until = self.tick + left;
                    [
                        format!("the minimum lease keeps the slot until {until}"),
                        format!("최소 리스가 {until}까지 슬롯을 남겨 둔다"),
                    ]
                }
            },
            Action::ReleaseRefused => self.stale(),
            Action::Elected | Action::Extended => {
                let until = self.tick + self.remaining.unwrap_or_default();
                [
                    format!("the lease ends at {until}"),
                    format!("리스는 {until}에 끝난다"),
                ]
            }
            Action::Waits | Action::Skipped => self.led_by_another(),
            Action::Failed => {
                let error = self.error.clone().unwrap_or_default();
                [error.clone(), error]
            }
        }
    }

    fn lost(&self) -> [String; 2] {
        let [english, korean] = match self.reason {
            Some("expired") => ["the lease has ended", "리스가 끝났다"],
            Some("taken") => ["another holds the slot", "다른 후보가 슬롯을 가졌다"],
            Some("deleted") => ["the record is gone", "기록이 사라졌다"],
            Some(other) => [other, other],
            None => ["", ""],
        };
        [english.to_owned(), korean.to_owned()]
    }

    fn refused(&self) -> [String; 2] {
        let (presented, seen) = (
            self.token.unwrap_or_default(),
            self.seen.unwrap_or_default(),
        );
        [
            format!("stale: {presented} is older than {seen}"),
            format!("낡은 토큰: {presented} < {seen}"),
        ]
    }

    fn stale(&self) -> [String; 2] {
        match self.holder {
            Some(holder) => [
                format!("stale: {holder} leads, and keeps its lease"),
                format!("낡음: {holder}가 이끌고, 그 리스는 그대로다"),
            ],
            None => [
                "stale: the lease had ended".to_owned(),
                "낡음: 리스는 이미 끝났다".to_owned(),
            ],
        }
    }

    fn led_by_another(&self) -> [String; 2] {
        match self.holder {
            Some(holder) => [
                format!("{holder} has the slot"),
                format!("{holder}가 슬롯을 가졌다"),
            ],
            None => [
                "all slots are taken".to_owned(),
                "슬롯이 모두 찼다".to_owned(),
            ],
        }
    }
}

/// The heads of a table's columns.
pub(super) fn heads(language: Language) -> [&'static str; 7] {
    language.of([
        [
            "tick",
            "candidate",
            "action",
            "slot",
            "fencing token",
            "remaining",
            "result",
        ],
        ["틱", "후보", "동작", "슬롯", "펜싱 토큰", "남음", "결과"],
    ])
}

impl Plan {
    /// The plan in a few lines.
    #[must_use]
    pub fn words(&self, language: Language) -> String {
        let Self {
            lease,
            work,
            wait,
            min_lease,
            slots,
            ..
        } = self;
        let limits = language.of([
            format!(
                "lease {lease}, work {work}, wait {wait}, min lease {min_lease}, slots {slots}"
            ),
            format!("리스 {lease}, 작업 {work}, 대기 {wait}, 최소 리스 {min_lease}, 슬롯 {slots}"),
        ]);
        let extended = if self.auto_extend {
            ["extended automatically", "자동 연장"]
        } else {
            ["not extended", "연장 안 함"]
        };
        let lost = match self.on_lost {
            OnLost::Stop => ["work stops when lost", "상실하면 작업 중단"],
            OnLost::Continue => ["work goes on when lost", "상실해도 작업 계속"],
        };
        let stands: Vec<String> = self
            .stands
            .iter()
            .map(|stand| format!("{}@{}", stand.candidate, stand.tick))
            .collect();
        let frozen = language.of(["frozen:", "정지:"]);
        let pauses: Vec<String> = self
            .pauses
            .iter()
            .map(|pause| {
                let (who, from, until) = (pause.candidate, pause.from, pause.until);
                format!("; {frozen} {who}@{from}-{until}")
            })
            .collect();
        format!(
            "{limits}, {}, {}\n{} {}{}",
            language.of(extended),
            language.of(lost),
            language.of(["stands:", "출마:"]),
            stands.join(" "),
            pauses.concat()
        )
    }
}
