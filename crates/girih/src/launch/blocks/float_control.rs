//! The processor's rounding and flushing while a kernel runs.

/// Rounds to nearest and flushes nothing while it lives; then restores the host program's setting.
pub(crate) struct FloatControl(u64);

impl FloatControl {
    pub(crate) fn standard() -> FloatControl {
        let old = FloatControl::read();
        #[cfg(target_arch = "x86_64")]
        FloatControl::write(0x1f80);
        #[cfg(target_arch = "aarch64")]
        FloatControl::write(0);
        FloatControl(old)
    }

    #[cfg(target_arch = "x86_64")]
    fn read() -> u64 {
        let mut value = 0u32;
        // SAFETY: stores the control register into a local.
        unsafe { std::arch::asm!("stmxcsr [{}]", in(reg) &raw mut value, options(nostack)) };
        u64::from(value)
    }
    #[cfg(target_arch = "x86_64")]
    fn write(value: u64) {
        let value = value as u32;
        // SAFETY: the value is the power-on default or one that was read from the register; all exceptions it unmasks
        // were unmasked before.
        unsafe { std::arch::asm!("ldmxcsr [{}]", in(reg) &raw const value, options(nostack)) };
    }
    #[cfg(target_arch = "aarch64")]
    fn read() -> u64 {
        let value: u64;
        // SAFETY: reads the control register.
        unsafe { std::arch::asm!("mrs {}, fpcr", out(reg) value) };
        value
    }
    #[cfg(target_arch = "aarch64")]
    fn write(value: u64) {
        // SAFETY: as on x86-64.
        unsafe { std::arch::asm!("msr fpcr, {}", in(reg) value) };
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    fn read() -> u64 {
        0
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    fn write(_: u64) {}
}

impl Drop for FloatControl {
    fn drop(&mut self) {
        FloatControl::write(self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_float_control_register_is_restored() {
        let before = FloatControl::read();
        drop(FloatControl::standard());
        assert_eq!(FloatControl::read(), before);
    }
}
