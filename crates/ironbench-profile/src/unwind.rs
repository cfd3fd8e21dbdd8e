//! Unwinds user stacks with the unwind tables of programs (`.eh_frame`), because most programs are compiled without
//! frame pointers. Code without such tables is unwound with frame pointers.

use std::collections::HashMap;
use std::fs;
use std::ops::Range;
use std::sync::Arc;

use framehop::{
    CacheNative, Error, ExplicitModuleSectionInfo, MayAllocateDuringUnwind, Module, UnwindRegsNative, Unwinder as _,
    UnwinderNative,
};
use object::{Object, ObjectSection, ObjectSegment, ReadCache};

use crate::record::UserState;
use crate::space::{FileId, Files, Space};

/// Numbers of the registers that unwinding needs (arch/x86/include/uapi/asm/perf_regs.h): BP, SP, IP.
#[cfg(target_arch = "x86_64")]
pub const REGISTERS: [u64; 3] = [6, 7, 8];
/// Numbers of the registers that unwinding needs (arch/arm64/include/uapi/asm/perf_regs.h): X29, LR, SP, PC.
#[cfg(target_arch = "aarch64")]
pub const REGISTERS: [u64; 4] = [29, 30, 31, 32];

/// Maximum number of address spaces whose tables are cached.
const MOST_SPACES: usize = 256;

type Bytes = Arc<[u8]>;
type Modules = UnwinderNative<Bytes, MayAllocateDuringUnwind>;

/// The parts of a program file that unwinding needs.
struct Tables {
    /// For each segment, its offset in the file, its size, and its address.
    segments: Vec<(u64, u64, u64)>,
    frames: Option<(Range<u64>, Bytes)>,
    index: Option<(Range<u64>, Bytes)>,
}

impl Tables {
    fn read(path: &str) -> Option<Self> {
        // Opening a device or a pipe may block.
        if !fs::metadata(path).ok()?.is_file() {
            return None;
        }
        // A program file may have hundreds of megabytes. Therefore only these sections are read.
        let program = ReadCache::new(fs::File::open(path).ok()?);
        let program = object::File::parse(&program).ok()?;
        let section = |name| {
            let section = program.section_by_name(name)?;
            let start = section.address();
            Some((start..start + section.size(), Bytes::from(section.data().ok()?)))
        };
        let segments = program.segments().map(|segment| {
            let (offset, size) = segment.file_range();
            (offset, size, segment.address())
        });
        Some(Self { segments: segments.collect(), frames: section(".eh_frame"), index: section(".eh_frame_hdr") })
    }

    fn module(&self, path: &str, start: u64, end: u64, offset: u64) -> Option<Module<Bytes>> {
        let holds = |&&(at, size, _): &&(u64, u64, u64)| at <= offset && offset < at + size;
        let &(at, _, address) = self.segments.iter().find(holds)?;
        let base = start.wrapping_sub(offset - at).wrapping_sub(address);
        let (frames_range, frames) = self.frames.clone().unzip();
        let (index_range, index) = self.index.clone().unzip();
        let sections = ExplicitModuleSectionInfo {
            eh_frame_svma: frames_range,
            eh_frame: frames,
            eh_frame_hdr_svma: index_range,
            eh_frame_hdr: index,
            ..Default::default()
        };
        Some(Module::new(path.to_owned(), start..end, base, sections))
    }
}

#[derive(Default)]
pub struct Unwinder {
    cache: CacheNative<MayAllocateDuringUnwind>,
    tables: HashMap<FileId, Option<Tables>>,
    /// Cached tables, by the ID of the address space.
    modules: HashMap<u64, Modules>,
}

impl Unwinder {
    /// Appends the addresses of the user's frames to `chain`, starting at the innermost, but at most `depth` of them.
    /// Returns false if callers are missing, because the stack has more frames, or because only a part of it was
    /// copied.
    pub fn unwind(
        &mut self,
        space: &Space,
        files: &Files,
        user: UserState<'_>,
        depth: usize,
        chain: &mut Vec<u64>,
    ) -> bool {
        if !self.modules.contains_key(&space.id()) {
            if self.modules.len() >= MOST_SPACES {
                self.modules.clear();
            }
            let modules = self.modules_of(space, files);
            self.modules.insert(space.id(), modules);
        }
        let modules = &self.modules[&space.id()];
        let (pc, sp, registers) = registers(user.registers);
        let mut read = |address: u64| {
            let offset = address.checked_sub(sp).filter(|offset| offset % 8 == 0).ok_or(())?;
            user.stack.get((offset / 8) as usize).copied().ok_or(())
        };
        let end = sp + 8 * user.stack.len() as u64;
        let mut frames = modules.iter_frames(pc, registers, &mut self.cache, &mut read);
        for _ in 0..depth {
            match frames.next() {
                Ok(Some(frame)) => chain.push(frame.address()),
                Ok(None) => return true,
                // The address is outside the copied part of the stack. If it is just beyond that part, the stack counts
                // as cut. Otherwise the code has neither unwind tables nor frame pointers, and the register contained
                // some other value.
                Err(Error::CouldNotReadStack(address)) => return !(end..end + (1 << 20)).contains(&address),
                Err(_) => return true,
            }
        }
        false
    }

    fn modules_of(&mut self, space: &Space, files: &Files) -> Modules {
        let mut modules = Modules::new();
        for (start, end, offset, file) in space.mappings() {
            let path = files.path(file);
            let tables = self.tables.entry(file).or_insert_with(|| Tables::read(path));
            if let Some(module) = tables.as_ref().and_then(|tables| tables.module(path, start, end, offset)) {
                modules.add_module(module);
            }
        }
        modules
    }
}

/// Returns program counter, stack pointer and all registers.
#[cfg(target_arch = "x86_64")]
fn registers(&[bp, sp, ip]: &[u64; REGISTERS.len()]) -> (u64, u64, UnwindRegsNative) {
    (ip, sp, UnwindRegsNative::new(ip, sp, bp))
}

/// Returns program counter, stack pointer and all registers.
#[cfg(target_arch = "aarch64")]
fn registers(&[fp, lr, sp, pc]: &[u64; REGISTERS.len()]) -> (u64, u64, UnwindRegsNative) {
    let mask = framehop::aarch64::PtrAuthMask::new_24_40();
    (pc, sp, UnwindRegsNative::new_with_ptr_auth_mask(mask, lr, sp, fp))
}
