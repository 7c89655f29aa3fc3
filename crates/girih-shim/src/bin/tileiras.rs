//! The drop-in for NVIDIA's `tileiras`.

fn main() -> std::process::ExitCode {
    eprintln!("error: not built yet");
    std::process::ExitCode::FAILURE
}
