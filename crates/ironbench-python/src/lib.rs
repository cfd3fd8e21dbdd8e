//! The interface between Python and the core, which only converts values and exceptions.

use pyo3::prelude::*;

mod capture;
mod connection;
mod data;
mod device;
mod drive;
mod driver;
mod errors;
mod gil;
mod histogram;
mod kernels;
mod ldap;
mod live;
mod mysql;
mod profile;
mod proxy;
mod relay;
mod rows;
mod sampler;
mod script;
mod session;
mod sqlite;
mod statements;
mod stats;
mod storage;

#[pymodule]
mod _core {
    use super::*;

    #[pymodule_export]
    use crate::capture::{LogRows, LoggedRows, masked_statement, write_tape};
    #[pymodule_export]
    use crate::connection::Connection;
    #[pymodule_export]
    use crate::data::{ArrowRows, LoadProgress, cut_rows, load_rows, template_entries, wide_sums, write_rows};
    #[pymodule_export]
    use crate::device::{ask_device, device_capacity, normal_device, probe_device, replay_trace};
    #[pymodule_export]
    use crate::drive::{DriveResult, Progress, drive, job_variables, operation_complaints};
    #[pymodule_export]
    use crate::driver::drive_called;
    #[pymodule_export]
    use crate::histogram::{Histogram, read_hlog, write_hlog};
    #[pymodule_export]
    use crate::kernels::{Kernels, mandelbrot_png};
    #[pymodule_export]
    use crate::ldap::LdapConnection;
    #[pymodule_export]
    use crate::live::LiveDevice;
    #[pymodule_export]
    use crate::mysql::MysqlConnection;
    #[pymodule_export]
    use crate::profile::{Profile, Profiler, available};
    #[pymodule_export]
    use crate::proxy::{CapturedRows, Proxy};
    #[pymodule_export]
    use crate::relay::Relay;
    #[pymodule_export]
    use crate::rows::hand_rows;
    #[pymodule_export]
    use crate::sampler::{Sampled, Sampler};
    #[pymodule_export]
    use crate::script::{compile_scripts, rehearse_script, script_cautions, split_weight};
    #[pymodule_export]
    use crate::sqlite::SqliteConnection;
    #[pymodule_export]
    use crate::statements::SqlScanner;
    #[pymodule_export]
    use crate::stats::{student_t_above, student_t_quantile};
    #[pymodule_export]
    use crate::storage::{StoragePass, StorageProgress, storage_pass};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("VERSION", env!("CARGO_PKG_VERSION"))?;
        module.add("BUILD_PROFILE", if cfg!(debug_assertions) { "debug" } else { "release" })
    }
}
