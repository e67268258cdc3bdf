//! Settings: numbers that an operator chooses, at load and while the server runs.

use super::{Module, Text};
use crate::decimal;
use libc::{c_char, c_int, c_longlong, c_void};
use redis_module::raw;
use std::ffi::CStr;
use std::ptr;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

/// A setting whose value is a number.
pub struct NumberSetting {
    /// Its name, without the module's.
    pub name: &'static CStr,
    /// Its least value, 0 or more.
    pub min: i64,
    /// Its greatest value.
    pub max: i64,
    value: AtomicI64,
}

impl NumberSetting {
    /// A setting that has its default value.
    pub const fn new(name: &'static CStr, default: i64, min: i64, max: i64) -> Self {
        Self { name, min, max, value: AtomicI64::new(default) }
    }

    /// Its value now.
    pub fn get(&self) -> i64 {
        self.value.load(Relaxed)
    }

    fn set(&self, value: i64) {
        self.value.store(value, Relaxed);
    }

    /// Takes the value that a module argument gives it.
    fn take(&self, value: Text) -> Result<(), String> {
        let number = decimal::parse(value.bytes()).and_then(|number| i64::try_from(number).ok());
        let number = number.filter(|number| (self.min..=self.max).contains(number));
        let (name, min, max) = (self.name.to_string_lossy(), self.min, self.max);
        self.set(number.ok_or_else(|| {
            let value = value.bytes().escape_ascii();
            format!("module argument {name}: '{value}' is no integer from {min} to {max}")
        })?);
        Ok(())
    }
}

impl Module<'_> {
    /// Gives the settings what the arguments of the load say, `name value` pairs, and then what the
    /// server's configuration says where it knows of modules' settings (7.0 on).
    ///
    /// # Errors
    /// If an argument is no setting, or a value out of range.
    pub fn add_settings(&self, settings: &[&'static NumberSetting]) -> Result<(), String> {
        let pairs = self.args().chunks(2);
        for (index, pair) in pairs.clone().enumerate() {
            let (name, value) = (pair[0].bytes(), pair.get(1));
            if pairs.clone().take(index).any(|other| other[0].bytes().eq_ignore_ascii_case(name)) {
                return Err(format!("module argument {} is given twice", name.escape_ascii()));
            }
            let known =
                settings.iter().find(|setting| setting.name.to_bytes().eq_ignore_ascii_case(name));
            match (known, value) {
                (Some(setting), Some(value)) => setting.take(*value)?,
                (Some(_), None) => {
                    return Err(format!("module argument {} has no value", name.escape_ascii()));
                }
                (None, _) => {
                    let names = settings.iter().map(|setting| setting.name.to_string_lossy());
                    let names = names.collect::<Vec<_>>().join(", ");
                    let name = name.escape_ascii();
                    return Err(format!("unknown module argument '{name}': there is {names}"));
                }
            }
        }
        self.register(settings)
    }

    fn register(&self, settings: &[&'static NumberSetting]) -> Result<(), String> {
        // SAFETY: the server has set these once, before anything else of ours ran.
        let (add, load) =
            unsafe { (raw::RedisModule_RegisterNumericConfig, raw::RedisModule_LoadConfigs) };
        let (Some(add), Some(load)) = (add, load) else { return Ok(()) };
        let refused = |status: c_int| status as isize != raw::REDISMODULE_OK;
        for setting in settings {
            let setting: &'static NumberSetting = setting;
            let data = ptr::from_ref(setting).cast_mut().cast::<c_void>();
            // SAFETY: the name is a C string, and the callbacks get back a setting that lives as long
            // as the module.
            let status = unsafe {
                let flags = raw::REDISMODULE_CONFIG_DEFAULT;
                let (value, min, max) = (setting.get(), setting.min, setting.max);
                let (get, set) = (Some(get_number as _), Some(set_number as _));
                let name = setting.name.as_ptr();
                add(self.context().as_ptr(), name, value, flags, min, max, get, set, None, data)
            };
            if refused(status) {
                return Err(format!("the setting {} is refused", setting.name.to_string_lossy()));
            }
        }
        // SAFETY: the context is that of the running call.
        match refused(unsafe { load(self.context().as_ptr()) }) {
            true => Err("a setting of the module has a value that is refused: see above".into()),
            false => Ok(()),
        }
    }
}

/// Where the server asks for a value.
unsafe extern "C" fn get_number(_name: *const c_char, setting: *mut c_void) -> c_longlong {
    // SAFETY: `register` gave a setting that lives as long as the module.
    unsafe { &*setting.cast::<NumberSetting>() }.get()
}

/// Where the server sets a value, which it has found to be in range.
unsafe extern "C" fn set_number(
    _name: *const c_char,
    value: c_longlong,
    setting: *mut c_void,
    _error: *mut *mut raw::RedisModuleString,
) -> c_int {
    // SAFETY: as above.
    unsafe { &*setting.cast::<NumberSetting>() }.set(value);
    raw::REDISMODULE_OK as c_int
}
