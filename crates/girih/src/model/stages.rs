//! Every stage of a model as text, and the rewrites of each rule on the way.

use girih_compiler::explain::{self, Explained, StageText, Watch};
use girih_compiler::graph::{self, Graph};
use girih_compiler::kernel;
use girih_compiler::loops::model::{ArrayId, Part, Plan, Step};
use girih_compiler::loops::print;
use girih_compiler::pipeline::{self, Lowered, Observer, Silent, Source, Stage};
use girih_compiler::tile::schedule::Writer;

use super::Model;
use crate::compile::gpu;
use crate::compile::inspect::Inspect;
use crate::compile::progress::{Shown, Working};
use crate::compile::version::PLANNED;
use crate::error::{Error, Result};
use crate::options::Options;

impl Model {
    /// Checks that every operation can be lowered to primitives.
    ///
    /// # Errors
    /// All the operations that cannot.
    pub fn check(&self) -> Result<()> {
        let options = self.options.pipeline(PLANNED)?;
        pipeline::lower_tensor(&self.graph, &options, &mut Silent).map(drop).map_err(Error::Program)
    }

    /// Lowers the model once more, telling the observer about every stage and rule.
    pub fn observe(&self, observer: &mut dyn Observer) -> Result<()> {
        self.compiled(observer).map(drop)
    }

    /// The model's text at a stage.
    pub fn ir(&self, stage: Stage) -> Result<String> {
        match stage {
            Stage::CudaTile => return Err(Error::argument("a model has no stage cuda_tile".to_string())),
            Stage::Torch => return Ok(text(&self.graph)),
            Stage::Tensor => {
                let options = self.options.pipeline(PLANNED)?;
                let tensor = pipeline::lower_tensor(&self.graph, &options, &mut Silent).map_err(Error::Program)?;
                return Ok(text(&tensor));
            }
            _ => {}
        }
        if stage == Stage::Schedule {
            let mut writer = Writer::new(self.options.pipeline(PLANNED)?.context());
            self.observe(&mut writer)?;
            return Ok(writer.finish());
        }
        let (model, lowered) = match stage {
            // Its kernels are those of the plan, before what is decided for the target.
            Stage::Loop => {
                let model = self.lower(&mut Silent)?;
                let _working = Working::compiling();
                let options = self.options.pipeline(PLANNED)?;
                let (rewrites, shown) = (&mut model.rewrites.clone(), &mut Shown(&mut Silent));
                let open = pipeline::lower_kernels(&model.plan, &options, rewrites, shown).map_err(Error::Program)?;
                (model, open)
            }
            _ => self.compiled(&mut Silent)?,
        };
        let comment = if stage.is_source() { "//" } else { "#" };
        let plan = if stage == Stage::Loop { &model.plan } else { &model.scheduled };
        let mut out = String::new();
        for line in summary(&model.tensor, plan) {
            out += &format!("{comment} {line}\n");
        }
        for one in &lowered {
            match stage {
                Stage::Loop => out += &format!("\n{}", print::print(&one.loops, print::Dialect::Loop)),
                Stage::Tile => out += &format!("\n{}", print::print(&one.tile, print::Dialect::Tile)),
                Stage::Kernel => out += &format!("\n{}", kernel::print::print(&one.kernel)),
                _ => {}
            }
        }
        if stage.is_source() {
            out += &gpu::text(stage, &statements(&lowered), &self.options.resolved_target())?;
        }
        Ok(out)
    }

    pub(super) fn lower(&self, observer: &mut dyn Observer) -> Result<pipeline::Model> {
        if let Some(plan) = &self.plan {
            return Ok(pipeline::Model {
                tensor: self.graph.clone(),
                plan: plan.clone(),
                scheduled: plan.clone(),
                rewrites: self.options.pipeline(PLANNED)?.rewrites(),
            });
        }
        let options = self.options.pipeline(PLANNED)?;
        let _working = Working::compiling();
        pipeline::lower_model(&self.graph, &options, &mut Shown(observer)).map_err(Error::Program)
    }

    /// The model at every stage, and its different kernels in the order of the plan.
    fn compiled(&self, observer: &mut dyn Observer) -> Result<(pipeline::Model, Vec<Lowered>)> {
        let options = self.options.pipeline(PLANNED)?;
        let planned = self.plan.as_ref().map(|_| self.lower(&mut Silent)).transpose()?;
        let source = planned.as_ref().map_or(Source::Model(&self.graph), Source::Planned);
        let _working = Working::compiling();
        let compiled = pipeline::compile(source, &options, &mut Shown(observer)).map_err(Error::Program)?;
        let model = compiled.model.ok_or_else(|| Error::Internal("a model was compiled as a program".into()))?;
        Ok((model, compiled.kernels))
    }
}

fn statements(lowered: &[Lowered]) -> Vec<&kernel::ir::Kernel> {
    lowered.iter().map(|l| &l.kernel).collect()
}

impl Inspect for Model {
    fn stages(&self) -> &'static [Stage] {
        Stage::of(&self.options.resolved_target(), true)
    }
    fn options(&self) -> &Options {
        Model::options(self)
    }
    fn ir(&self, stage: Stage) -> Result<String> {
        Model::ir(self, stage)
    }
    fn resources(&self) -> Result<String> {
        let (_, lowered) = self.compiled(&mut Silent)?;
        gpu::resources(&statements(&lowered), &self.options.resolved_target())
    }
    fn observe(&self, observer: &mut dyn Observer) -> Result<()> {
        Model::observe(self, observer)
    }
    fn written(&self) -> Option<StageText> {
        let stage = if pipeline::is_torch(&self.graph) { Stage::Torch } else { Stage::Tensor };
        Some(explain::of_graph(stage, &self.graph))
    }
    fn explain(&self) -> Result<Explained> {
        let mut watch = Watch::new(&self.options.pipeline(PLANNED)?);
        let (model, lowered) = self.compiled(&mut watch)?;
        Ok(explain::model(&self.graph, &model, &lowered, watch, &self.options.resolved_target()))
    }
}

pub(super) fn text(graph: &Graph) -> String {
    graph::print::print(graph, graph::print::Dialect::of(graph))
}

/// The plan in a few lines: each launch with its operations.
fn summary(tensor: &Graph, plan: &Plan) -> Vec<String> {
    let text = |when: &str, i: usize, steps: &[Step]| {
        let Some(step) = steps.get(i) else { return String::new() };
        let origins = tensor.origins_of(&step.origins).join(", ");
        let of = if origins.is_empty() { String::new() } else { format!(": {origins}") };
        format!("{when} {} of {}, {}{of}", i + 1, steps.len(), step.kernel.name)
    };
    let mut lines: Vec<String> = (0..plan.load.len()).map(|i| text("load", i, &plan.load)).collect();
    loops(tensor, plan, &plan.parts(0..plan.steps.len(), None), "", &|i| text("run", i, &plan.steps), &mut lines);
    lines
}

/// The steps of a run, those of loops deeper.
fn loops(
    tensor: &Graph,
    plan: &Plan,
    parts: &[Part],
    deep: &str,
    step: &dyn Fn(usize) -> String,
    out: &mut Vec<String>,
) {
    for part in parts {
        let (id, range) = match part {
            Part::Step(at) => {
                out.push(format!("{deep}{}", step(*at)));
                continue;
            }
            Part::Loop(id, range) => (*id, range.clone()),
        };
        let Some(l) = plan.loops.get(id) else { continue };
        let name = |id: &ArrayId| plan.arrays.get(*id).map_or("?", |a| a.name.as_str());
        let condition = l.condition.as_ref().map(|c| format!(", while `{}`", name(c))).unwrap_or_default();
        out.push(format!("{deep}run {} times{condition}:", tensor.ix_text(&l.rounds)));
        loops(tensor, plan, &plan.parts(range, Some(id)), &format!("{deep}  "), step, out);
        for (from, to) in &l.last {
            out.push(format!("{deep}  copy `{}` to `{}`", name(from), name(to)));
        }
    }
}
