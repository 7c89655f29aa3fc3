//! Graphs, built from nodes or captured from a stream. A node's dependencies exist before it does, so the order of insertion is
//! an order of execution; work submitted to a stream under capture becomes a node in that order instead of being done.

use std::collections::BTreeMap;
use std::ffi::{c_int, c_uint, c_ulonglong, c_void};
use std::sync::Arc;

use crate::codes;
use crate::driver;
use crate::failure::{Failure, Result};
use crate::ffi::{In, Out};
use crate::handles::{Handle, Table};
use crate::launch::{self, Call};
use crate::memory::{self, Origin};
use crate::stream::{self, Event, HostFn};
use girih::sync::Brief;

/// The work of a node.
#[derive(Clone)]
pub enum Work {
    Nothing,
    Kernel(Arc<Call>),
    Fill {
        to: u64,
        pitch: usize,
        value: u32,
        size: usize,
        width: usize,
        rows: usize,
    },
    Copy {
        to: u64,
        from: u64,
        bytes: usize,
    },
    Record(Arc<Event>),
    Host {
        function: HostFn,
        data: usize,
    },
    /// Memory of a node: there from the node's creation on, as long as the graph or an executable graph made of it.
    Allocate {
        _held: Arc<Allocation>,
    },
    Run(Arc<Graph>),
}

pub struct Allocation {
    start: u64,
    id: u64,
}

impl Drop for Allocation {
    fn drop(&mut self) {
        memory::free_same(self.start, self.id);
    }
}

#[derive(Default)]
pub struct Graph {
    nodes: Brief<Vec<Work>>,
}

impl Graph {
    fn nodes(&self) -> Vec<Work> {
        self.nodes.lock().clone()
    }
    fn run(&self) -> Result<()> {
        self.nodes().iter().try_for_each(Work::run)
    }
}

impl Work {
    fn run(&self) -> Result<()> {
        match self {
            Work::Nothing | Work::Allocate { .. } => Ok(()),
            Work::Kernel(call) => call.run(),
            Work::Fill { to, pitch, value, size, width, rows } => {
                memory::fill(*to, *pitch, *value, *size, *width, *rows)
            }
            Work::Copy { to, from, bytes } => memory::copy(*to, *from, *bytes),
            Work::Record(event) => {
                event.record();
                Ok(())
            }
            Work::Host { function, data } => {
                stream::call_host(*function, std::ptr::with_exposed_provenance_mut::<c_void>(*data))
            }
            Work::Run(graph) => graph.run(),
        }
    }
}

static GRAPHS: Table<Graph> = Table::new("graph");
static EXECUTABLES: Table<Graph> = Table::new("executable graph");
/// The graph that a node is in.
static NODES: Table<Handle> = Table::new("node");

/// The graph that is captured from each stream under capture, by the stream's id.
static CAPTURES: Brief<BTreeMap<u64, Handle>> = Brief::new(BTreeMap::new());

fn captured(on: Handle) -> Result<Option<Handle>> {
    let id = stream::stream(on)?.id;
    Ok(CAPTURES.lock().get(&id).copied())
}

/// Does work submitted to a stream, or adds it to the graph that is captured from the stream.
pub fn submit(on: Handle, work: Work) -> Result<()> {
    match captured(on)? {
        None => work.run(),
        Some(graph) => {
            NODES.insert(graph);
            GRAPHS.get(graph)?.nodes.lock().push(work);
            Ok(())
        }
    }
}

/// Refuses work that no node can do, on a stream under capture.
pub fn not_captured(on: Handle) -> Result<()> {
    match captured(on)? {
        None => Ok(()),
        Some(_) => {
            let message = "the stream is being captured into a graph, which cannot hold this";
            Err(Failure::new(codes::ERROR_STREAM_CAPTURE_UNSUPPORTED, message))
        }
    }
}

/// Adds a node whose dependencies are nodes of the same graph.
fn add(out: Out<Handle>, graph: Handle, after: In<Handle>, count: usize, work: Work) -> Result<()> {
    let into = GRAPHS.get(graph)?;
    for i in 0..count {
        let node = after.at(i)?;
        if *NODES.get(node)? != graph {
            return Err(Failure::value("a node depends on a node of another graph"));
        }
    }
    out.set(NODES.insert(graph))?;
    into.nodes.lock().push(work);
    Ok(())
}

fn instantiate(out: Out<Handle>, graph: Handle) -> Result<()> {
    let nodes = GRAPHS.get(graph)?.nodes();
    out.set(EXECUTABLES.insert(Graph { nodes: Brief::new(nodes) }))
}

/// `CUDA_KERNEL_NODE_PARAMS`, the second version; the first one ends before `kernel`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct KernelNode {
    function: Handle,
    grid: [c_uint; 3],
    block: [c_uint; 3],
    shared: c_uint,
    params: In<In<u8>>,
    extra: In<usize>,
    kernel: Handle,
    context: Handle,
}

/// `CUDA_MEMSET_NODE_PARAMS`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct MemsetNode {
    to: u64,
    pitch: usize,
    value: c_uint,
    size: c_uint,
    width: usize,
    height: usize,
}

/// `CUDA_MEM_ALLOC_NODE_PARAMS`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct AllocNode {
    pool: [u64; 11],
    access: usize,
    access_count: usize,
    bytes: usize,
    address: u64,
}

/// `CUDA_HOST_NODE_PARAMS`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct HostNode {
    function: HostFn,
    data: *mut c_void,
}

fn fill_of(p: MemsetNode) -> Result<Work> {
    if ![1, 2, 4].contains(&p.size) {
        return Err(Failure::value(format!("elements of {} bytes cannot be set", p.size)));
    }
    let size = p.size as usize;
    Ok(Work::Fill { to: p.to, pitch: p.pitch, value: p.value, size, width: p.width, rows: p.height })
}

driver! {
    fn cuStreamIsCapturing(on: Handle, status: Out<c_int>) { status.set(captured(on)?.is_some().into()) }
    fn cuStreamGetCaptureInfo_v2(
        on: Handle, status: Out<c_int>, id: Out<c_ulonglong>, graph: Out<Handle>,
        _dependencies: Out<*const Handle>, count: Out<usize>,
    ) {
        let found = captured(on)?;
        status.set(found.is_some().into())?;
        id.set_if(found.map_or(0, |graph| graph.0 as c_ulonglong));
        graph.set_if(found.unwrap_or(Handle::NULL));
        count.set_if(0);
        Ok(())
    }
    fn cuStreamBeginCapture_v2(on: Handle, _mode: c_int) {
        let id = stream::stream(on)?.id;
        let mut captures = CAPTURES.lock();
        if captures.contains_key(&id) {
            return Err(Failure::new(codes::ERROR_ILLEGAL_STATE, "the stream is captured already"));
        }
        captures.insert(id, GRAPHS.insert(Graph::default()));
        Ok(())
    }
    fn cuStreamEndCapture(on: Handle, graph: Out<Handle>) {
        let id = stream::stream(on)?.id;
        let found = CAPTURES.lock().remove(&id);
        graph.set(found.ok_or_else(|| Failure::new(codes::ERROR_ILLEGAL_STATE, "the stream is not captured"))?)
    }
    fn cuGraphCreate(out: Out<Handle>, _flags: c_uint) { out.set(GRAPHS.insert(Graph::default())) }
    fn cuGraphDestroy(graph: Handle) {
        GRAPHS.remove(graph)?;
        NODES.retain(|&of| of != graph);
        Ok(())
    }
    fn cuGraphAddEmptyNode(out: Out<Handle>, graph: Handle, after: In<Handle>, count: usize) {
        add(out, graph, after, count, Work::Nothing)
    }
    fn cuGraphAddKernelNode_v2(
        out: Out<Handle>, graph: Handle, after: In<Handle>, count: usize, params: In<KernelNode>,
    ) {
        let p = params.get()?;
        let function = if p.function == Handle::NULL { p.kernel } else { p.function };
        let call = launch::prepare(function, p.grid, p.params, p.extra)?;
        add(out, graph, after, count, Work::Kernel(Arc::new(call)))
    }
    fn cuGraphAddMemsetNode(
        out: Out<Handle>, graph: Handle, after: In<Handle>, count: usize, params: In<MemsetNode>, _context: Handle,
    ) {
        add(out, graph, after, count, fill_of(params.get()?)?)
    }
    fn cuGraphAddMemAllocNode(
        out: Out<Handle>, graph: Handle, after: In<Handle>, count: usize, params: Out<AllocNode>,
    ) {
        let mut p = params.read()?;
        p.address = memory::allocate(p.bytes, Origin::Device)?;
        let id = memory::around(p.address).map_or(0, |r| r.id);
        let held = Arc::new(Allocation { start: p.address, id });
        params.set(p)?;
        add(out, graph, after, count, Work::Allocate { _held: held })
    }
    fn cuGraphAddMemFreeNode(out: Out<Handle>, graph: Handle, after: In<Handle>, count: usize, address: u64) {
        if memory::around(address).is_none_or(|r| r.start != address) {
            return Err(Failure::value(format!("{address:#x} is not the start of an allocation")));
        }
        // The memory lives as long as the graph, so that the graph can be launched again.
        add(out, graph, after, count, Work::Nothing)
    }
    fn cuGraphAddMemcpyNode1D(
        out: Out<Handle>, graph: Handle, after: In<Handle>, count: usize, to: u64, from: u64, bytes: usize,
    ) {
        add(out, graph, after, count, Work::Copy { to, from, bytes })
    }
    fn cuGraphAddEventRecordNode(
        out: Out<Handle>, graph: Handle, after: In<Handle>, count: usize, event: Handle,
    ) {
        add(out, graph, after, count, Work::Record(stream::event(event)?))
    }
    fn cuGraphAddEventWaitNode(
        out: Out<Handle>, graph: Handle, after: In<Handle>, count: usize, event: Handle,
    ) {
        stream::event(event)?;
        add(out, graph, after, count, Work::Nothing)
    }
    fn cuGraphAddHostNode(
        out: Out<Handle>, graph: Handle, after: In<Handle>, count: usize, params: In<HostNode>,
    ) {
        let p = params.get()?;
        add(out, graph, after, count, Work::Host { function: p.function, data: p.data.expose_provenance() })
    }
    fn cuGraphAddChildGraphNode(
        out: Out<Handle>, graph: Handle, after: In<Handle>, count: usize, child: Handle,
    ) {
        let nodes = GRAPHS.get(child)?.nodes();
        add(out, graph, after, count, Work::Run(Arc::new(Graph { nodes: Brief::new(nodes) })))
    }
    fn cuGraphGetNodes(graph: Handle, _nodes: Out<Handle>, count: Out<usize>) {
        count.set(GRAPHS.get(graph)?.nodes().len())
    }
    fn cuGraphInstantiateWithFlags(out: Out<Handle>, graph: Handle, _flags: c_ulonglong) { instantiate(out, graph) }
    fn cuGraphInstantiate_v2(
        out: Out<Handle>, graph: Handle, node: Out<Handle>, _log: Out<u8>, _room: usize,
    ) {
        node.set_if(Handle::NULL);
        instantiate(out, graph)
    }
    fn cuGraphUpload(executable: Handle, on: Handle) {
        stream::stream(on)?;
        EXECUTABLES.get(executable).map(drop)
    }
    fn cuGraphLaunch(executable: Handle, on: Handle) { submit(on, Work::Run(EXECUTABLES.get(executable)?)) }
    fn cuGraphExecDestroy(executable: Handle) { EXECUTABLES.remove(executable).map(drop) }
    fn cuDeviceGraphMemTrim(device: c_int) { crate::context::check_device(device) }
}
