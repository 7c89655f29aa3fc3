//! The grammar of Hugging Face folders: the part of a model that other commands take, and `girih generate`.

use std::path::PathBuf;

use clap::Args;

/// The part of a Hugging Face model that is compiled, and its shape.
#[derive(Args, Default, Clone)]
pub struct FolderArgs {
    /// For a Hugging Face folder: only the N-th decoder layer, from 0 on.
    #[arg(long, value_name = "N")]
    pub layer: Option<u32>,
    /// For a Hugging Face folder: tokens of a sequence; 32 by default.
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u32).range(1..))]
    pub seq_len: Option<u32>,
    /// For a Hugging Face folder: sequences; 1 by default.
    #[arg(long, value_name = "B", value_parser = clap::value_parser!(u32).range(1..))]
    pub batch: Option<u32>,
    /// For a Hugging Face folder: the element type of its weights, in place of their own.
    #[arg(long, value_name = "TYPE", value_parser = ["f32", "bf16", "f16"])]
    pub dtype: Option<String>,
    /// For a Hugging Face folder: quantise the weights of its linear layers.
    #[arg(long, value_name = "TYPE", value_parser = ["int8", "int4"])]
    pub quantize: Option<String>,
}

impl FolderArgs {
    /// The flags that were given.
    pub fn flags(&self) -> Vec<String> {
        let number = |flag: &str, value: Option<u32>| value.map(|n| format!("--{flag}={n}"));
        let numbers = [("layer", self.layer), ("seq-len", self.seq_len), ("batch", self.batch)];
        let all = numbers.into_iter().filter_map(|(flag, value)| number(flag, value));
        let types = [("dtype", &self.dtype), ("quantize", &self.quantize)];
        let types = types.into_iter().filter_map(|(flag, value)| Some(format!("--{flag}={}", value.as_ref()?)));
        all.chain(types).collect()
    }
}

#[derive(Args)]
pub struct GenerateArgs {
    /// A folder with config.json, weights in the form of safetensors, and a tokenizer.
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    /// The text to continue.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub prompt: String,
    /// The most tokens to add; fewer where the model ends its text, or has no more positions.
    #[arg(long, value_name = "N", default_value_t = 128, value_parser = clap::value_parser!(u32).range(1..))]
    pub max_tokens: u32,
    /// 0: the likeliest token each time; 1: tokens drawn by the model's probabilities; between: likely ones more often.
    #[arg(long, value_name = "T", default_value_t = 0.0, value_parser = temperature, allow_hyphen_values = true)]
    pub temperature: f64,
    /// With a temperature: draw from the likeliest tokens that together have this probability.
    #[arg(long, value_name = "P", default_value_t = 1.0, value_parser = probability, allow_hyphen_values = true)]
    pub top_p: f64,
    /// With a temperature: the seed of the draws; the same seed gives the same text.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64))]
    pub seed: u64,
    /// The element type of the weights, in place of their own.
    #[arg(long, value_name = "TYPE", value_parser = ["f32", "bf16", "f16"])]
    pub dtype: Option<String>,
    /// Quantise the weights of linear layers.
    #[arg(long, value_name = "TYPE", value_parser = ["int8", "int4"])]
    pub quantize: Option<String>,
    /// Print one JSON object in place of the text.
    #[arg(long)]
    pub json: bool,
    /// Say where the time of the last token went, by layer.
    #[arg(long)]
    pub profile: bool,
}

fn temperature(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|t: &f64| (0.0..=100.0).contains(t));
    number.ok_or_else(|| format!("expected a number from 0 to 100, found `{text}`"))
}

fn probability(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|p: &f64| *p > 0.0 && *p <= 1.0);
    number.ok_or_else(|| format!("expected a number above 0 and at most 1, found `{text}`"))
}
