//! The documentation, held to the server and to the table of commands.
//!
//! A block marked `redis` is a session of redis-cli: a prompt and a command, then the reply, with a
//! remark behind two spaces or more. Lines of a block marked `sh` that begin with `redis-cli` are
//! commands too. Blocks marked `http` are answers that follow from the replies before them.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use redis::Value;
use rl::commands::table;

use crate::cli::shown;
use crate::harness::Server;

const PROMPT: &str = "127.0.0.1:6379> ";

/// The pages that link to others.
const LINKING: [&str; 9] = [
    "README.md",
    "docs/CHOOSING.md",
    "docs/COMMANDS.md",
    "docs/FAILURE.md",
    "docs/HTTP.md",
    "docs/MIGRATING.md",
    "docs/OPERATIONS.md",
    "docs/REDIS-CLI.md",
    "docs/SECURITY.md",
];

/// The text of a page.
pub fn page(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

// --- The examples ----------------------------------------------------------------------------------

/// The lines inside the blocks of a page that are marked with `language`.
fn block_lines<'a>(page: &'a str, language: &str) -> Vec<&'a str> {
    let opening = format!("```{language}");
    let mut lines = Vec::new();
    let mut inside = false;
    for line in page.lines() {
        match line.starts_with("```") {
            true => inside = line == opening,
            false if inside => lines.push(line),
            false => {}
        }
    }
    lines
}

/// A line of a reply without the remark behind it.
fn without_remark(line: &str) -> &str {
    let indent = line.len() - line.trim_start().len();
    let end = line[indent..].find("  ").map_or(line.len(), |at| indent + at);
    &line[..end]
}

/// A command of a session, and the lines of its reply.
fn sessions(page: &str) -> Vec<(String, Vec<String>)> {
    let mut sessions: Vec<(String, Vec<String>)> = Vec::new();
    for line in block_lines(page, "redis") {
        if let Some(command) = line.strip_prefix(PROMPT) {
            sessions.push((command.to_string(), Vec::new()));
        } else {
            let reply = without_remark(line).to_string();
            sessions.last_mut().expect("a session begins with a prompt").1.push(reply);
        }
    }
    sessions
}

/// Runs all sessions of a page, of which there are so many at least, on one fresh server.
fn answers_as_shown(name: &str, least: usize) {
    let server = Server::start();
    let sessions = sessions(&page(name));
    assert!(sessions.len() >= least, "only {} examples were found", sessions.len());
    for (command, reply) in sessions {
        if command.contains("rl.max-log-entries")
            && server.lacks("settings of modules", "module|loadex")
        {
            continue;
        }
        if command == "DEL tokens pages" && server.forbids("a call with keys of several slots") {
            continue;
        }
        assert_eq!(shown(&server.try_run(&command)), reply, "{name}: {command}");
    }
}

#[test]
fn the_readme_shows_what_the_server_answers() {
    answers_as_shown("README.md", 5);
}

#[test]
fn the_page_of_the_commands_shows_what_the_server_answers() {
    answers_as_shown("docs/COMMANDS.md", 45);
}

#[test]
fn the_tour_shows_what_the_server_answers() {
    answers_as_shown("docs/REDIS-CLI.md", 10);
}

#[test]
fn the_page_on_choosing_shows_what_the_server_answers() {
    answers_as_shown("docs/CHOOSING.md", 17);
}

#[test]
fn the_page_on_migrating_shows_what_the_server_answers() {
    answers_as_shown("docs/MIGRATING.md", 12);
}

#[test]
fn the_page_on_http_shows_what_the_server_answers() {
    answers_as_shown("docs/HTTP.md", 6);
}

#[test]
fn the_page_on_failures_shows_what_the_server_answers() {
    answers_as_shown("docs/FAILURE.md", 11);
}

#[test]
fn the_page_on_security_shows_what_the_server_answers() {
    answers_as_shown("docs/SECURITY.md", 4);
}

#[test]
fn the_readme_types_commands_that_work() {
    let server = Server::start();
    let page = page("README.md");
    let lines = block_lines(&page, "sh").into_iter();
    let commands: Vec<&str> = lines.filter_map(|line| line.strip_prefix("redis-cli ")).collect();
    assert!(!commands.is_empty(), "no command was found");
    for command in commands {
        let answer = server.try_run(command).unwrap_or_else(|error| panic!("{command}: {error}"));
        assert!(matches!(answer, Value::Array(_)), "{command}: {answer:?}");
    }
}

// --- What follows from the replies -----------------------------------------------------------------

/// Milliseconds as the whole seconds that a client must wait.
fn seconds(ms: i64) -> i64 {
    (ms + 999) / 1000
}

/// The lines of an answer over HTTP that follow from the six integers.
fn http_lines(reply: &[i64]) -> Vec<String> {
    let [allowed, limit, remaining, retry_after_ms, reset_after_ms, window_ms] = reply else {
        panic!("no reply of a limiter: {reply:?}")
    };
    let policy = format!("RateLimit-Policy: \"default\";q={limit};w={}", seconds(*window_ms));
    let quota = format!("RateLimit: \"default\";r={remaining}");
    let more = |after_ms| format!("{quota};t={}", seconds(after_ms));
    let problem = "Content-Type: application/problem+json".to_string();
    match (allowed, retry_after_ms) {
        (1, 0) => vec!["HTTP/1.1 200 OK".into(), policy, more(*reset_after_ms)],
        (0, -1) => vec!["HTTP/1.1 413 Content Too Large".into(), policy, quota, problem],
        (0, 1..) => vec![
            "HTTP/1.1 429 Too Many Requests".into(),
            policy,
            more(*retry_after_ms),
            format!("Retry-After: {}", seconds(*retry_after_ms)),
            problem,
        ],
        _ => panic!("no limiter replies so: {reply:?}"),
    }
}

#[test]
fn the_headers_are_those_of_the_replies() {
    let page = page("docs/HTTP.md");
    let integer = |line: &String| line.rsplit(' ').next().unwrap().parse::<i64>().ok();
    let replies = sessions(&page).into_iter().map(|(_, lines)| lines);
    let replies = replies.filter_map(|lines| lines.iter().map(integer).collect::<Option<Vec<_>>>());
    let expected: Vec<String> = replies.take(3).flat_map(|reply| http_lines(&reply)).collect();
    assert_eq!(block_lines(&page, "http"), expected);
}

/// The rows of the table of memory: what makes the key, and its bytes, at least and at most.
fn memory_rows(page: &str) -> Vec<(&str, u64, u64)> {
    let rows = page.lines().filter(|line| line.starts_with("| `RL."));
    rows.filter_map(|row| {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        Some((cells[1], cells[2].parse().ok()?, cells[3].parse().ok()?))
    })
    .collect()
}

/// Fills a fresh key as the first cell of a row says: `RL.SWC`, 8 windows.
fn fill(server: &Server, what: &str) {
    server.run::<Value>("DEL user:42");
    let (command, size) = what.split_once(", ").unwrap();
    let count: u64 = size.split_once(' ').unwrap().0.parse().unwrap();
    let at = 1_796_037_190_000_u64;
    if command == "`RL.SWC`" {
        let windows: Vec<String> = (1..=count).map(|minutes| format!("{minutes}m 1000")).collect();
        return server.does(&format!("RL.SWC user:42 {} COST 900 AT {at}", windows.join(" ")));
    }
    assert_eq!(command, "`RL.SLIDE`");
    for number in 0..count {
        server.does(&format!("RL.SLIDE user:42 1h 1000000 AT {}", at + number));
    }
}

#[test]
fn limiters_take_the_memory_that_the_page_names() {
    let page = page("docs/CHOOSING.md");
    let rows = memory_rows(&page);
    assert_eq!(rows.len(), 8);
    let server = Server::start();
    for (what, least, most) in rows {
        fill(&server, what);
        let bytes: u64 = server.run("MEMORY USAGE user:42 SAMPLES 0");
        // Chance builds a skiplist, and other builds of a server allocate otherwise. In a cluster of
        // Redis 7.0 a key takes 16 bytes more.
        let expected = least * 9 / 10..=most * 11 / 10 + 16;
        assert!(expected.contains(&bytes), "{what}: {bytes} bytes");
    }
}

// --- What the table of commands says ---------------------------------------------------------------

#[test]
fn the_page_of_the_commands_says_what_the_table_says() {
    let page = page("docs/COMMANDS.md");
    let sections = page.split("\n## ").filter(|section| section.starts_with("RL."));
    let sections: Vec<Vec<&str>> = sections.map(|section| section.lines().collect()).collect();
    assert_eq!(sections.len(), table::ALL.len());
    for (section, command) in sections.iter().zip(table::ALL) {
        let text = |text: &std::ffi::CStr| text.to_str().unwrap().to_string();
        let categories = text(command.acl_categories);
        let categories: Vec<_> = categories.split(' ').map(|name| format!("`@{name}`")).collect();
        let expected = [
            text(command.name).to_uppercase(),
            String::new(),
            format!("    {}", command.syntax()),
            String::new(),
            format!("- **Available since:** {}", text(command.since)),
            format!("- **Time complexity:** {}", text(command.complexity)),
            format!("- **ACL categories:** {}", categories.join(" ")),
        ];
        assert_eq!(section[..expected.len()], expected);
    }
}

#[test]
fn the_readme_has_the_syntax_of_the_table() {
    let page = page("README.md");
    let shown = page.lines().filter(|line| line.starts_with("    RL."));
    let shown: Vec<String> =
        shown.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(shown, table::ALL.map(|command| command.syntax()));
}

// --- What the server says --------------------------------------------------------------------------

/// The page's words in backticks, outside of blocks.
fn in_backticks(page: &str) -> impl Iterator<Item = &str> {
    page.split('`').skip(1).step_by(2)
}

#[test]
fn the_fields_of_info_are_all_there() {
    let page = page("docs/COMMANDS.md");
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `rl_")?.split_once('`'));
    let shown: Vec<String> = rows.map(|(name, _)| format!("rl_{name}")).collect();
    let info: String = Server::start().run("INFO rl");
    let fields: Vec<&str> = info.lines().filter_map(|line| Some(line.split_once(':')?.0)).collect();
    assert!(!fields.is_empty());
    assert_eq!(shown, fields);
}

/// Calls that go wrong, one for every error that there is.
const WRONG_CALLS: [&str; 32] = [
    "RL.SLIDE k 60 5",
    "RL.SLIDE k 60x 5",
    "RL.SLIDE k 60s 5 60s 5",
    "RL.SLIDE k 1s 5 2s 5 3s 5 4s 5 5s 5 6s 5 7s 5 8s 5 9s 5",
    "RL.SLIDE k 1s 5 60s",
    "RL.SLIDE k 60s -1",
    "RL.SLIDE k 1s 5 PRECISION 2s",
    "RL.SLIDE k 60s 5 AT now",
    "RL.SLIDE k 60s 5 NX",
    "RL.SLIDE k 60s 5 COST",
    "RL.SLIDE k 60s 5 COST 1 COST 1",
    "RL.SLIDE k",
    "RL.SLIDE text 60s 5",
    "RL.SLIDE set 60s 5",
    "RL.SLIDE full 60s 5 AT 1000000",
    "RL.SWC k 60s 5 PRECISION 1s",
    "RL.SWC hash 60s 5",
    "RL.SWC text 60s 5",
    "RL.SLIDE k 5 60s",
    "RL.PEEK text 60s 5",
    "RL.PEEK set 60s 5",
    "RL.REFUND k 0",
    "RL.REFUND k 1 AT now",
    "RL.REFUND k 1 COST 5",
    "RL.REFUND k 1 AT",
    "RL.REFUND k 1 AT 5 AT 5",
    "RL.REFUND k",
    "RL.REFUND text 1",
    "RL.REFUND set 1",
    "RL.DENIED COUNT 0",
    "RL.DENIED COUNT",
    "RL.DENIED LIMIT",
];

/// Errors that no call brings about.
const UNSEEN: [&str; 2] = [
    "ERR the server refused a write: see its log, and report it",
    "ERR internal error: see the server's log",
];

/// The errors that the server answers with; a time that depends on the clock is `<that>`.
fn errors(server: &Server) -> BTreeSet<String> {
    server.does("SET text v");
    server.does("HSET hash f v");
    server.does("ZADD set 1 m");
    let largest = i64::MAX;
    let entries = [format!("1000 s{0}+{0}", largest - 1), format!("990000 s{largest}+1")];
    server.plant("full", &entries);
    let told = |call: &str| {
        let error = server.error(call);
        match error.rsplit_once("server's clock, ") {
            Some((before, _)) => format!("{before}server's clock, <that>"),
            None => error,
        }
    };
    let mut errors: BTreeSet<String> = WRONG_CALLS.iter().map(|call| told(call)).collect();
    server.does("CONFIG SET maxmemory 1");
    errors.insert(told("RL.SLIDE missing 60s 5"));
    errors
}

#[test]
fn the_errors_are_the_servers_words() {
    let page = page("docs/COMMANDS.md");
    let is_error =
        |words: &&str| ["ERR ", "WRONGTYPE ", "OOM "].iter().any(|code| words.starts_with(code));
    let shown: BTreeSet<String> = in_backticks(&page).filter(is_error).map(String::from).collect();
    let mut expected = errors(&Server::start());
    expected.extend(UNSEEN.map(String::from));
    assert_eq!(shown, expected);
}

#[test]
fn links_between_the_pages_lead_somewhere() {
    for name in LINKING {
        let text = page(name);
        let folder = Path::new(name).parent().unwrap();
        let targets = text.split("](").skip(1).filter_map(|rest| Some(rest.split_once(')')?.0));
        let mut files = 0;
        for target in targets.filter(|target| !target.starts_with("http")) {
            let (file, heading) = target.split_once('#').unwrap_or((target, ""));
            let file = if file.is_empty() { name.into() } else { folder.join(file) };
            let linked = page(file.to_str().unwrap());
            assert!(heading.is_empty() || anchors(&linked).contains(heading), "{name}: {target}");
            files += 1;
        }
        assert!(files > 0, "{name} links to nothing");
    }
}

/// What a link to a heading of the page says, as GitHub makes it.
fn anchors(page: &str) -> BTreeSet<String> {
    let headings = page.lines().filter_map(|line| line.strip_prefix("##"));
    let kept = |character: &char| character.is_alphanumeric() || "- _".contains(*character);
    let anchor = |heading: &str| heading.trim_start_matches('#').trim().to_lowercase();
    headings
        .map(|heading| anchor(heading).chars().filter(kept).collect::<String>().replace(' ', "-"))
        .collect()
}
