//! Tile IR bytecode: the form in which NVIDIA's front ends deliver programs.
//!
//! A file is the [`MAGIC`], a [`Version`], and sections that refer to each other by number: strings, types, constants,
//! globals, functions and debug locations. [`layout`] states the encoding of each operation once for all versions;
//! [`tags`] has the numbers of sections, types, attributes and locations.
//!
//! ```text
//! 7f 54 69 6c 65 49 52 00   magic
//! 0d 04 00 00               version 13.4
//! 82 1a 08 ...              functions: aligned, 26 bytes, to a multiple of 8
//! ...
//! 00                        the end
//! ```

pub mod layout;
mod read;
pub mod tags;
pub mod write;

pub use write::{write, write_oldest};

pub use read::{Read, read};

/// The first bytes of every file.
pub const MAGIC: [u8; 8] = *b"\x7fTileIR\0";

/// A version of the format: major, minor, and a tag whose lowest bit allows preview features.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Version {
    pub major: u8,
    pub minor: u8,
    pub tag: u16,
}

impl Version {
    pub const V13_1: Version = Version::new(13, 1);
    pub const V13_2: Version = Version::new(13, 2);
    pub const V13_3: Version = Version::new(13, 3);
    pub const V13_4: Version = Version::new(13, 4);
    pub const V13_5: Version = Version::new(13, 5);

    /// All versions, oldest first.
    pub const ALL: [Version; 5] = [Version::V13_1, Version::V13_2, Version::V13_3, Version::V13_4, Version::V13_5];

    const fn new(major: u8, minor: u8) -> Version {
        Version { major, minor, tag: 0 }
    }

    /// `13.4`
    pub fn from_name(name: &str) -> Option<Version> {
        Version::ALL.into_iter().find(|v| v.to_string() == name)
    }

    /// Returns true if this version has the features of version `since`.
    pub fn has(self, since: (u8, u8)) -> bool {
        (self.major, self.minor) >= since
    }

    /// Returns true if preview features are allowed.
    pub fn preview(self) -> bool {
        self.tag & 1 != 0
    }
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// Returns true if a file is bytecode; anything else is text.
pub fn is_bytecode(bytes: &[u8]) -> bool {
    bytes.starts_with(&MAGIC)
}
