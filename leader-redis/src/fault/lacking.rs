//! What a user of the server must be allowed, where the server's own words do not say it.

/// The commands of the script `source` that a refusal may be about, if it is one that does not name the command: servers
/// before 7.2 do not, but they mostly tell the line.
pub(super) fn commands<'a>(words: &str, source: &'a str) -> Vec<&'a str> {
    if !words.contains("can't run this command") {
        return Vec::new();
    }
    if let Some(line) = line(words).and_then(|line| source.lines().nth(line.checked_sub(1)?)) {
        return called(line, "redis.").collect();
    }
    // Without a line it is an error that the script itself has handed on.
    let mut commands: Vec<&str> = called(source, "redis.p").collect();
    commands.sort_unstable();
    commands.dedup();
    commands
}

/// Which keys or channels a user must be allowed when it is refused `words` for `key`.
pub(super) fn pattern(words: &str, key: &str) -> Option<String> {
    let (prefix, _) = key.split_once(":{")?;
    if words.contains("channel") {
        Some(format!("&{prefix}:*"))
    } else if words.contains("access a key") || words.contains("access one of the keys") {
        Some(format!("~{prefix}:*"))
    } else {
        None
    }
}

fn line(words: &str) -> Option<usize> {
    let (_, rest) = words.split_once("@user_script:")?;
    let rest = rest.trim_start();
    let end = rest
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(rest.len());
    rest[..end].parse().ok()
}

fn called<'a>(source: &'a str, how: &str) -> impl Iterator<Item = &'a str> {
    source.split(how).skip(1).filter_map(|after| {
        let (before, rest) = after.split_once("call('")?;
        let (command, _) = rest.split_once('\'')?;
        matches!(before, "" | "p").then_some(command)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "local a = redis.call('HGETALL', key)\n\
                          local b = redis.pcall('HSET', key)\n\
                          if redis.pcall('PEXPIRE', key) then redis.call('HDEL', key) end\n";

    #[test]
    fn the_command_is_found_by_the_line_or_is_one_of_a_few() {
        let refused = "The user executing the script can't run this command or subcommand";
        for (words, commands) in [
            (
                format!(
                    "ERR Error running script (call to f_1): @user_script:1: @user_script: 1: {refused}"
                ),
                vec!["HGETALL"],
            ),
            (
                format!("ERR {refused} script: ab12, on @user_script:3."),
                vec!["PEXPIRE", "HDEL"],
            ),
            (format!("@user_script: 2: {refused}"), vec!["HSET"]),
            (format!("ERR {refused}"), vec!["HSET", "PEXPIRE"]),
            (
                format!("ERR {refused} script: ab12, on @user_script:0."),
                vec!["HSET", "PEXPIRE"],
            ),
            (
                "NOPERM this user has no permissions to run the 'hset' command".to_owned(),
                vec![],
            ),
        ] {
            assert_eq!(super::commands(&words, SOURCE), commands, "{words}");
        }
    }

    #[test]
    fn keys_and_channels_are_told_by_their_prefix() {
        let key = "leader:{x}:lease";
        for (words, needed) in [
            ("NOPERM No permissions to access a key", Some("~leader:*")),
            (
                "NOPERM this user has no permissions to access one of the keys used as arguments",
                Some("~leader:*"),
            ),
            (
                "ERR ACL failure in script: No permissions to access a channel",
                Some("&leader:*"),
            ),
            (
                "ERR The user executing the script can't publish to the channel mentioned in the command",
                Some("&leader:*"),
            ),
            (
                "NOPERM this user has no permissions to run the 'hset' command",
                None,
            ),
        ] {
            assert_eq!(pattern(words, key).as_deref(), needed, "{words}");
        }
        assert_eq!(pattern("NOPERM No permissions to access a key", "x"), None);
    }
}
