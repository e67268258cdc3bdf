//! What is handed to other machines: the tarball, the Debian package, the Dockerfiles and the workflow.

use super::*;
use std::collections::BTreeSet;

const MACHINE: &str = std::env::consts::ARCH;
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What `make dist` packs into a folder of its own.
struct Packed {
    folder: TempDir,
    output: String,
}

impl Packed {
    fn new() -> Packed {
        library();
        let folder = TempDir::new();
        let output = succeed(make("dist").arg(folder.setting("DIST_DIR", "")));
        Packed { folder, output }
    }

    fn tarball(&self) -> PathBuf {
        self.folder.path(&format!("redis-rl-{VERSION}-linux-{MACHINE}.tar.gz"))
    }

    fn package(&self) -> PathBuf {
        let architecture = succeed(Command::new("dpkg").arg("--print-architecture"));
        self.folder.path(&format!("redis-rl_{VERSION}_{}.deb", architecture.trim()))
    }
}

#[test]
fn dist_packs_the_same_bytes_each_time() {
    let (one, other) = (Packed::new(), Packed::new());
    assert!(one.output.contains("Packed "), "{}", one.output);
    for (one, other) in [(one.tarball(), other.tarball()), (one.package(), other.package())] {
        assert!(fs::read(&one).unwrap() == fs::read(other).unwrap(), "{}", one.display());
    }
}

#[test]
fn the_tarball_has_what_its_checksums_say_and_loads() {
    let packed = Packed::new();
    let folder = TempDir::new();
    succeed(Command::new("tar").arg("xzf").arg(packed.tarball()).current_dir(&folder.0));
    let inside = folder.path(&format!("redis-rl-{VERSION}-linux-{MACHINE}"));

    let sums = fs::read_to_string(inside.join("SHA256SUMS")).unwrap();
    succeed(
        Command::new("sha256sum").args(["--check", "--strict", "SHA256SUMS"]).current_dir(&inside),
    );
    let listed: BTreeSet<&str> = sums.lines().map(|line| &line[66..]).collect();
    for file in
        ["librl.so", "README.md", "LICENSE", "NOTICES", "CHANGELOG.md", "redis.conf.example"]
    {
        assert!(listed.contains(file), "{file}: {sums}");
    }
    assert_notices(&inside.join("NOTICES"));
    let found = succeed(
        Command::new("find").args([".", "-type", "f", "-printf", "%P\\n"]).current_dir(&inside),
    );
    let found: BTreeSet<&str> = found.lines().filter(|file| *file != "SHA256SUMS").collect();
    assert_eq!(listed, found, "all files are listed");

    assert_eq!(fs::read(inside.join("librl.so")).unwrap(), fs::read(library()).unwrap());
    assert_loads(&inside.join("librl.so"));
    assert!(links(&inside) > 50);
}

/// Follows every link of the pages in a folder to a file, and counts them.
fn links(folder: &Path) -> usize {
    let pages = succeed(Command::new("find").arg(folder).args(["-name", "*.md"]));
    let mut count = 0;
    for page in pages.lines().map(Path::new) {
        let text = fs::read_to_string(page).unwrap();
        for link in text.split("](").skip(1) {
            let target = link.split([')', '#']).next().unwrap();
            if target.is_empty() || target.contains("://") {
                continue;
            }
            assert!(page.with_file_name(target).exists(), "{}: {target}", page.display());
            count += 1;
        }
    }
    count
}

#[test]
fn the_debian_package_installs_a_library_that_loads() {
    let package = Packed::new().installed();
    let library_there = package.path(&INSTALLED[1..]);
    assert_eq!(mode(&library_there), 0o755);
    assert_eq!(fs::read(&library_there).unwrap(), fs::read(library()).unwrap());
    for document in ["README.md", "copyright", "changelog.gz", "redis.conf.example"] {
        assert_eq!(mode(&package.path("usr/share/doc/redis-rl").join(document)), 0o644);
    }
    assert!(links(&package.path("usr/share/doc/redis-rl")) > 50);
    assert_notices(&package.path("usr/share/doc/redis-rl/copyright"));
    assert_loads(&library_there);
}

impl Packed {
    /// The package installed below a folder: by dpkg, whose own records are kept there, if this is root.
    fn installed(&self) -> TempDir {
        let root = TempDir::new();
        if id(&["-u"]) != Some(0) {
            eprintln!("Not root: the package is unpacked and not installed.");
            succeed(Command::new("dpkg-deb").arg("-x").arg(self.package()).arg(&root.0));
            return root;
        }
        for folder in ["updates", "info", "triggers"] {
            fs::create_dir_all(root.path("var/lib/dpkg").join(folder)).unwrap();
        }
        fs::write(root.path("var/lib/dpkg/status"), "").unwrap();
        // The C library that it depends on is not below that folder.
        let mut install = Command::new("dpkg");
        install.arg("--root").arg(&root.0).arg("--log").arg(root.path("log"));
        succeed(install.args(["--force-depends", "--install"]).arg(self.package()));
        let mut query = Command::new("dpkg-query");
        query.arg("--admindir").arg(root.path("var/lib/dpkg"));
        let status =
            succeed(query.args(["--show", "--showformat", "${db:Status-Status}", "redis-rl"]));
        assert_eq!(status, "installed");
        root
    }
}

#[test]
fn the_readme_and_the_package_name_the_glibc_that_the_library_needs() {
    let needed = succeed(Command::new("scripts/glibc.sh").arg(library()));
    let needed = needed.trim();
    let readme = fs::read_to_string(Path::new(ROOT).join("README.md")).unwrap();
    assert!(readme.contains(&format!("glibc {needed} or later")), "it needs {needed}");
    let depends =
        succeed(Command::new("dpkg-deb").arg("-f").arg(Packed::new().package()).arg("Depends"));
    assert_eq!(depends.trim(), format!("libc6 (>= {needed}), libgcc-s1"));
}

#[test]
fn dist_refuses_a_library_that_needs_a_newer_glibc() {
    let folder = TempDir::new();
    fs::create_dir(folder.path("bin")).unwrap();
    folder.script(
        "bin/objdump",
        "echo '0 DF *UND* 0 (GLIBC_2.4) a'; echo '0 DF *UND* 0 (GLIBC_9.10) b'",
    );
    let path = format!("{}:{}", folder.path("bin").display(), std::env::var("PATH").unwrap());
    let output = fail(
        Command::new("scripts/dist.sh")
            .env("PATH", path)
            .env("LIBRARY", library())
            .env("DIST_DIR", folder.path("dist"))
            .env("MODULES_DIR", "/usr/lib/redis/modules"),
    );
    assert!(output.contains("needs glibc 9.10, and the README promises "), "{output}");
    assert!(!folder.path("dist").exists(), "nothing was packed");
}

// --- Docker and the workflow -----------------------------------------------------------------------

/// The lines of a file that begin with a word, without it.
fn lines_of(file: &str, word: &str) -> Vec<String> {
    let text = fs::read_to_string(Path::new(ROOT).join(file)).unwrap();
    let lines = text.lines().filter_map(|line| line.trim_start().strip_prefix(word));
    lines.map(|rest| rest.trim().to_owned()).collect()
}

#[test]
fn the_dockerfiles_run_a_script_that_installs() {
    library();
    for (file, server) in [("redis", "redis-server"), ("valkey", "valkey-server")] {
        let file = format!("packaging/docker/{file}.Dockerfile");
        assert_eq!(lines_of(&file, "RUN "), ["packaging/install.sh /installed"]);
        assert_eq!(lines_of(&file, "COPY "), [". .", "--from=build /installed/ /"]);
        let start = format!("[\"{server}\", \"--loadmodule\", \"{INSTALLED}\"]");
        assert_eq!(lines_of(&file, "CMD "), [start]);
    }
    let stage = TempDir::new();
    succeed(Command::new("packaging/install.sh").arg(&stage.0));
    assert_loads(&stage.path(&INSTALLED[1..]));
}

#[test]
fn the_workflow_only_calls_make_targets() {
    let makefile = fs::read_to_string(Path::new(ROOT).join("Makefile")).unwrap();
    let steps = lines_of(".github/workflows/ci.yml", "- run:");
    assert!(!steps.is_empty());
    for step in steps {
        let target = step.strip_prefix("make ").unwrap_or_else(|| panic!("{step}"));
        assert!(makefile.contains(&format!("\n{target}:")), "there is no {target}");
    }
}

// --- The harness -----------------------------------------------------------------------------------

/// The file has the licence of each crate that the library is made of. That of redis-module asks for its
/// text to go along.
fn assert_notices(file: &Path) {
    let notices = fs::read_to_string(file).unwrap();
    let manifest = fs::read_to_string(Path::new(ROOT).join("Cargo.toml")).unwrap();
    let dependencies =
        manifest.split("[dependencies]").nth(1).unwrap().split("\n\n").next().unwrap();
    let crates = dependencies.lines().filter_map(|line| line.split_once(" = "));
    for name in crates.map(|(name, _)| name) {
        assert!(notices.contains(&format!("\n{name} ")), "{name}: {notices}");
    }
    assert!(notices.contains("Redistributions in binary form"), "{notices}");
}

/// A server loads this library and limits with it.
fn assert_loads(library: &Path) {
    let folder = TempDir::new();
    let socket = folder.path("s.sock");
    let mut server = Command::new(server_program());
    server.args(["--port", "0", "--save", "", "--loadmodule"]).arg(library);
    server.arg("--unixsocket").arg(&socket).current_dir(&folder.0);
    let mut job = Job::start(&mut server);
    let mut connection = job
        .connect(&format!("redis+unix://{}", socket.display()), SOON)
        .unwrap_or_else(|| panic!("the server stopped:\n{}", job.output()));
    assert_eq!(slide(&mut connection, "k", 5).unwrap()[..2], [1, 5]);
    job.signal("TERM");
    assert!(job.wait(SOON).success(), "{}", job.output());
}
