//! What a command is, as the server is told: its name, flags and access, and its documentation.

use libc::c_int;
use redis_module::raw;
use std::ffi::CStr;
use std::mem;
use std::ptr;

/// A command as `COMMAND INFO` and `COMMAND DOCS` show it.
#[derive(Clone, Copy, Debug)]
pub struct CommandInfo {
    /// Its name, in lower case.
    pub name: &'static CStr,
    /// Its flags, as the server spells them.
    pub flags: &'static CStr,
    /// The ACL categories it belongs to, without their `@`.
    pub acl_categories: &'static CStr,
    /// What it does with its key, which is its first argument; `None` if it has no key.
    pub access: Option<Access>,
    /// What it does, in a sentence.
    pub summary: &'static CStr,
    /// What it costs, in O notation.
    pub complexity: &'static CStr,
    /// The version of the module that had it first.
    pub since: &'static CStr,
    /// Its arguments.
    pub args: &'static [Arg],
}

/// What a command does with its key: users need the right to that, and to no more.
#[derive(Clone, Copy, Debug)]
pub enum Access {
    /// Reads it.
    Read,
    /// Reads and changes it.
    Update,
}

/// An argument.
#[derive(Clone, Copy, Debug)]
pub struct Arg {
    /// What it is called in the documentation.
    pub name: &'static CStr,
    /// What it is.
    pub kind: ArgKind,
    /// The word that stands before it.
    pub token: Option<&'static CStr>,
    /// Whether it may be missing.
    pub optional: bool,
    /// Whether it may be repeated.
    pub multiple: bool,
}

/// What an argument is.
#[derive(Clone, Copy, Debug)]
pub enum ArgKind {
    /// The key.
    Key,
    /// Bytes.
    Text,
    /// A number.
    Integer,
    /// A time, in Unix milliseconds here.
    UnixTime,
    /// Nothing but its token.
    Token,
    /// Several arguments, one behind the other.
    Block(&'static [Arg]),
    /// One of several arguments, the shortest first.
    OneOf(&'static [Arg]),
}

impl Arg {
    /// An argument that must be there, once.
    pub const fn new(name: &'static CStr, kind: ArgKind) -> Self {
        Self { name, kind, token: None, optional: false, multiple: false }
    }

    /// An option: a token and what stands behind it.
    pub const fn option(token: &'static CStr, name: &'static CStr, kind: ArgKind) -> Self {
        Self { name, kind, token: Some(token), optional: true, multiple: false }
    }

    /// The same, repeatable.
    pub const fn repeated(self) -> Self {
        Self { multiple: true, ..self }
    }

    /// The same, but it must be there.
    pub const fn required(self) -> Self {
        Self { optional: false, ..self }
    }

    /// Words that it takes at least.
    const fn min_words(&self) -> usize {
        let value = match self.kind {
            ArgKind::Token => 0,
            ArgKind::Block(args) => min_words(args),
            ArgKind::OneOf(args) => args[0].min_words(),
            ArgKind::Key | ArgKind::Text | ArgKind::Integer | ArgKind::UnixTime => 1,
        };
        if self.optional { 0 } else { self.token.is_some() as usize + value }
    }

    /// How the documentation writes it.
    fn syntax(&self) -> String {
        let join = |args: &[Arg], between: &str| {
            args.iter().map(Arg::syntax).collect::<Vec<_>>().join(between)
        };
        let token = self.token.map(CStr::to_string_lossy);
        let value = match self.kind {
            ArgKind::Token => None,
            ArgKind::Block(args) => Some(join(args, " ")),
            ArgKind::OneOf(args) => Some(join(args, " | ")),
            _ => Some(self.name.to_string_lossy().into_owned()),
        };
        let words: Vec<String> = token.map(String::from).into_iter().chain(value).collect();
        let once = words.join(" ");
        let all = if self.multiple { format!("{once} [{once} ...]") } else { once };
        if self.optional { format!("[{all}]") } else { all }
    }
}

/// Words that several arguments take at least.
const fn min_words(args: &[Arg]) -> usize {
    match args.split_first() {
        Some((first, rest)) => first.min_words() + min_words(rest),
        None => 0,
    }
}

impl CommandInfo {
    /// Words of the shortest call, with the command's name.
    pub const fn min_words(&self) -> usize {
        1 + min_words(self.args)
    }

    /// How a call is written, as the documentation shows it: `RL.REFUND key n [AT t]`.
    pub fn syntax(&self) -> String {
        let name = self.name.to_string_lossy().to_uppercase();
        let args = self.args.iter().map(Arg::syntax);
        [name].into_iter().chain(args).collect::<Vec<_>>().join(" ")
    }

    /// Tells the server all of this, of a command that was just created: `command` is what
    /// `GetCommand` gives for it, `set` the server's `SetCommandInfo`. Says whether that worked.
    ///
    /// # Safety
    /// Both are the server's.
    pub(super) unsafe fn describe(
        &self,
        command: *mut raw::RedisModuleCommand,
        set: unsafe extern "C" fn(
            *mut raw::RedisModuleCommand,
            *const raw::RedisModuleCommandInfo,
        ) -> c_int,
    ) -> bool {
        let version = raw::RedisModuleCommandInfoVersion {
            version: 1,
            sizeof_historyentry: size_of::<raw::RedisModuleCommandHistoryEntry>(),
            sizeof_keyspec: size_of::<raw::RedisModuleCommandKeySpec>(),
            sizeof_arg: size_of::<raw::RedisModuleCommandArg>(),
        };
        let mut keys: Vec<_> = self.access.map(key_spec).into_iter().chain([zeroed()]).collect();
        let mut args = RawArgs::of(self.args);
        let info = raw::RedisModuleCommandInfo {
            version: &version,
            summary: self.summary.as_ptr(),
            complexity: self.complexity.as_ptr(),
            since: self.since.as_ptr(),
            arity: -(self.min_words() as c_int),
            key_specs: keys.as_mut_ptr(),
            args: args.list.as_mut_ptr(),
            ..zeroed()
        };
        // SAFETY: the caller's; every pointer in `info` lives here, and the server copies it all.
        let status = unsafe { set(command, &info) };
        status as isize == raw::REDISMODULE_OK
    }
}

/// A key as the first argument.
fn key_spec(access: Access) -> raw::RedisModuleCommandKeySpec {
    let flags = match access {
        Access::Read => raw::REDISMODULE_CMD_KEY_RO | raw::REDISMODULE_CMD_KEY_ACCESS,
        Access::Update => {
            raw::REDISMODULE_CMD_KEY_RW
                | raw::REDISMODULE_CMD_KEY_ACCESS
                | raw::REDISMODULE_CMD_KEY_UPDATE
        }
    };
    let mut spec: raw::RedisModuleCommandKeySpec = zeroed();
    spec.flags = u64::from(flags);
    spec.begin_search_type = raw::RedisModuleKeySpecBeginSearchType_REDISMODULE_KSPEC_BS_INDEX;
    spec.bs.index.pos = 1;
    spec.find_keys_type = raw::RedisModuleKeySpecFindKeysType_REDISMODULE_KSPEC_FK_RANGE;
    spec.fk.range.keystep = 1;
    spec
}

/// Arguments as the server takes them: a list that ends with a zero, whose blocks point to lists of
/// their own.
struct RawArgs {
    list: Vec<raw::RedisModuleCommandArg>,
    /// The lists that `list` points to.
    _blocks: Vec<RawArgs>,
}

impl RawArgs {
    fn of(args: &[Arg]) -> Self {
        let mut blocks = Vec::new();
        let mut list: Vec<_> = args.iter().map(|arg| Self::one(arg, &mut blocks)).collect();
        list.push(zeroed());
        Self { list, _blocks: blocks }
    }

    fn one(arg: &Arg, blocks: &mut Vec<RawArgs>) -> raw::RedisModuleCommandArg {
        let mut subargs = |args: &'static [Arg]| {
            let mut block = RawArgs::of(args);
            // The list stays where it is when the block moves: only its vector does.
            let list = block.list.as_mut_ptr();
            blocks.push(block);
            list
        };
        let (kind, subargs) = match arg.kind {
            ArgKind::Key => (raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_KEY, None),
            ArgKind::Text => (raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_STRING, None),
            ArgKind::Integer => (raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_INTEGER, None),
            ArgKind::UnixTime => {
                (raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_UNIX_TIME, None)
            }
            ArgKind::Token => {
                (raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_PURE_TOKEN, None)
            }
            ArgKind::Block(args) => {
                (raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_BLOCK, Some(subargs(args)))
            }
            ArgKind::OneOf(args) => {
                (raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_ONEOF, Some(subargs(args)))
            }
        };
        let optional = if arg.optional { raw::REDISMODULE_CMD_ARG_OPTIONAL } else { 0 };
        let multiple = if arg.multiple { raw::REDISMODULE_CMD_ARG_MULTIPLE } else { 0 };
        raw::RedisModuleCommandArg {
            name: arg.name.as_ptr(),
            type_: kind,
            token: arg.token.map_or(ptr::null(), CStr::as_ptr),
            flags: (optional | multiple) as c_int,
            subargs: subargs.unwrap_or(ptr::null_mut()),
            ..zeroed()
        }
    }
}

/// One of the module API's plain structures, saying nothing: null pointers and zeros.
fn zeroed<T: Plain>() -> T {
    // SAFETY: `Plain` is only for structures of which all zeros are a value.
    unsafe { mem::zeroed() }
}

/// Structures of pointers and numbers, of which all zeros are a value.
trait Plain {}
impl Plain for raw::RedisModuleCommandInfo {}
impl Plain for raw::RedisModuleCommandKeySpec {}
impl Plain for raw::RedisModuleCommandArg {}
