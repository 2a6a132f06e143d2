//! Graphs as a CSV pair: what is read, what is written, and what is refused with which words.

use spillbench_core::formats::FormatError;
use spillbench_core::formats::graph_csv::{CsvError, Half, drops_meta, locate, read, write_edges, write_nodes};
use spillbench_core::graph::{Field, GraphError, NodeSpec, Notice};
use spillbench_core::{BufId, Cycles, Graph, GraphBuilder, Id};

const NODES: &str = "\
Id,Op,BufId,Size,Type,Pipe,Cycles,Bufs
0,ALLOC,0,6,UB,,,
1,ALLOC,7,4,L1,,,
2,COPY_IN,,,,MTE2,15,0
3,ADD,,,,VECTOR,30,\"0,7\"
4,NOP,,,,VECTOR,0,
5,FREE,0,6,UB,,,
6,FREE,7,4,L1,,,
";

const EDGES: &str = "StartNodeId,EndNodeId\n0,2\n2,3\n3,5\n3,4\n";

fn graph() -> Graph {
    let mut g = GraphBuilder::new();
    g.alloc(0, 0, 6, "UB").alloc(1, 7, 4, "L1").op(2, "COPY_IN", "MTE2", 15, &[0]);
    g.op(3, "ADD", "VECTOR", 30, &[0, 7]).op(4, "NOP", "VECTOR", 0, &[]).free(5, 0, 6, "UB").free(6, 7, 4, "L1");
    g.edge(0, 2).edge(2, 3).edge(3, 5).edge(3, 4);
    g.build().unwrap().0
}

fn written(graph: &Graph) -> (String, String) {
    let (mut nodes, mut edges) = (Vec::new(), Vec::new());
    write_nodes(graph, &mut nodes).unwrap();
    write_edges(graph, &mut edges).unwrap();
    (String::from_utf8(nodes).unwrap(), String::from_utf8(edges).unwrap())
}

/// The message of a failed read.
fn refusal(nodes: &str, edges: &str) -> String {
    read(nodes.as_bytes(), edges.as_bytes()).unwrap_err().to_string()
}

#[test]
fn reads_and_writes_the_same_pair() {
    let (read_back, notices) = read(NODES.as_bytes(), EDGES.as_bytes()).unwrap();
    assert_eq!((&read_back, notices), (&graph(), vec![]));
    assert_eq!(written(&read_back), (NODES.to_owned(), EDGES.to_owned()));
}

#[test]
fn byte_order_mark_crlf_blank_end_and_spaces_around_numbers_are_forgiven() {
    let nodes = format!("\u{feff}{}\r\n \t\r\n\r\n", NODES.replace('\n', "\r\n").replace("\"0,7\"", "\" 0 , 7 \""));
    let edges = format!("\u{feff}{}\n\n", EDGES.replace("0,2", " 0, 2 "));
    assert_eq!(read(nodes.as_bytes(), edges.as_bytes()).unwrap().0, graph());
    // No line end at the end.
    assert_eq!(read(NODES.trim_end().as_bytes(), EDGES.trim_end().as_bytes()).unwrap().0, graph());
}

#[test]
fn columns_are_found_by_name() {
    let nodes = "Bufs,Size,Type,Op,Id,BufId\n,6,UB,ALLOC,0,0\n0,,,EXP,1,\n,6,UB,FREE,2,0\n";
    let (graph, notices) = read(nodes.as_bytes(), b"EndNodeId,StartNodeId\n1,0\n").unwrap();
    assert_eq!(notices, [Notice::NoTiming { ops: 1, first: Id(1) }]);
    let [alloc, exp] = [0, 1].map(|id| graph.node_by_id(Id(id)).unwrap());
    assert_eq!(graph.successors(alloc), [exp]);
    assert_eq!((graph.pipe(exp), graph.cycles(exp)), (None, None));
}

#[test]
fn each_unknown_column_gives_one_notice() {
    let nodes = NODES.replace('\n', ",x\n").replacen(",x\n", ",Colour\n", 1);
    let edges = EDGES.replace('\n', ",1\n").replacen(",1\n", ",Weight\n", 1);
    let (read_back, notices) = read(nodes.as_bytes(), edges.as_bytes()).unwrap();
    assert_eq!(read_back, graph());
    let unknown = |key: &str| Notice::UnknownKey { key: key.to_owned(), count: 1 };
    assert_eq!(notices, [unknown("Colour"), unknown("Weight")]);
}

#[test]
fn writes_are_kept_known_and_empty_ones_too() {
    let mut g = GraphBuilder::new();
    g.alloc(0, 0, 6, "UB").alloc(1, 7, 4, "L1");
    let op = |id, writes| NodeSpec {
        id,
        op: "ADD",
        pipe: Some("VECTOR"),
        cycles: Some(3),
        bufs: Some(&[0, 7]),
        writes,
        ..Default::default()
    };
    g.node(op(2, Some(&[7]))).node(op(3, Some(&[]))).node(op(4, None)).node(op(5, Some(&[7, 0])));
    g.free(6, 0, 6, "UB").free(7, 7, 4, "L1");
    let graph = g.build().unwrap().0;
    let (nodes, edges) = written(&graph);
    let lines: Vec<_> = nodes.lines().collect();
    assert_eq!(lines[0], "Id,Op,BufId,Size,Type,Pipe,Cycles,Bufs,Writes");
    assert_eq!(lines[3..7].iter().map(|l| &l[24..]).collect::<Vec<_>>(), ["7", "-", "", "\"7,0\""]);
    assert_eq!(read(nodes.as_bytes(), edges.as_bytes()).unwrap().0, graph);
}

#[test]
fn names_with_commas_quotes_and_line_ends_survive() {
    let mut g = GraphBuilder::new();
    g.alloc(0, 0, 6, "U,B").op(1, "say \"hi\"\r\n,", " P\n", 1, &[0]).free(2, 0, 6, "U,B");
    let graph = g.build().unwrap().0;
    let (nodes, edges) = written(&graph);
    assert_eq!(read(nodes.as_bytes(), edges.as_bytes()).unwrap().0, graph);
    // A row that spans lines does not upset the numbers of later ones.
    let broken = nodes.replacen("2,FREE", "x,FREE", 1);
    let line = nodes.lines().count();
    assert!(refusal(&broken, &edges).starts_with(&format!("nodes file: line {line}: Id is \"x\"")));
}

#[test]
fn an_empty_name_cannot_be_written() {
    let mut g = GraphBuilder::new();
    g.alloc(0, 0, 6, "UB").op(1, "EXP", "", 1, &[0]).free(2, 0, 6, "UB");
    let error = write_nodes(&g.build().unwrap().0, &mut Vec::new()).unwrap_err();
    assert_eq!(error.to_string(), "node 1 has an empty Pipe, which CSV cannot tell from an absent one");
}

#[test]
fn meta_has_no_place() {
    let mut g = GraphBuilder::new();
    g.alloc(0, 0, 6, "UB").free(1, 0, 6, "UB").meta("{\"by\":\"hand\"}");
    let graph = g.build().unwrap().0;
    assert!(drops_meta(&graph));
    let (nodes, edges) = written(&graph);
    assert!(!drops_meta(&read(nodes.as_bytes(), edges.as_bytes()).unwrap().0));
}

#[test]
fn missing_columns_are_all_named() {
    let message = "nodes file: line 1: the header lacks the columns Id, Op, BufId, Size, Type, Bufs";
    assert_eq!(refusal(EDGES, EDGES), message);
    let message = "nodes file: line 1: the header lacks the column Size";
    assert_eq!(refusal(&NODES.replace("Size", "size"), EDGES), message);
    assert_eq!(refusal(NODES, "StartNodeId\n0\n"), "edges file: line 1: the header lacks the column EndNodeId");
    let message = "nodes file: line 1: the header has the column Op twice";
    assert_eq!(refusal(&NODES.replace("Pipe", "Op"), EDGES), message);
}

#[test]
fn empty_files_are_refused_and_files_with_a_header_only_are_not_empty() {
    assert_eq!(read(b"", EDGES.as_bytes()), Err(CsvError::Nodes(FormatError::Empty)));
    assert_eq!(read(NODES.as_bytes(), b" \r\n"), Err(CsvError::Edges(FormatError::Empty)));
    let header = NODES.lines().next().unwrap();
    let Err(CsvError::Graph(errors)) = read(header.as_bytes(), b"StartNodeId,EndNodeId") else { panic!() };
    assert_eq!(errors.list, [GraphError::Empty]);
    assert_eq!(read(NODES.as_bytes(), b"StartNodeId,EndNodeId").unwrap().0.edge_count(), 0);
}

#[test]
fn a_field_of_the_wrong_form_is_named_with_line_and_column() {
    let nodes = |from: &str, to: &str| refusal(&NODES.replacen(from, to, 1), EDGES);
    let number = "not a whole number from 0 to 2^64-1";
    let id = "not a whole number from 0 to 2^63-1";
    assert_eq!(nodes("MTE2,15", "MTE2,15.0"), format!("nodes file: line 4: Cycles is \"15.0\", {number}"));
    assert_eq!(nodes("7,4,L1", "7,-4,L1"), format!("nodes file: line 3: Size is \"-4\", {number}"));
    let huge = "18446744073709551616";
    assert_eq!(nodes("7,4,L1", &format!("7,{huge},L1")), format!("nodes file: line 3: Size is \"{huge}\", {number}"));
    assert_eq!(nodes("\"0,7\"", "\"[0,7]\""), format!("nodes file: line 5: Bufs holds \"[0\", {id}"));
    assert_eq!(nodes("\"0,7\"", "\"0,,7\""), format!("nodes file: line 5: Bufs holds \"\", {id}"));
    assert_eq!(nodes("\"0,7\"", "0,7"), "nodes file: line 5: the row has 9 fields, the header has 8");
    let message = "edges file: line 2: the row has 1 field, the header has 2";
    assert_eq!(refusal(NODES, "StartNodeId,EndNodeId\n0\n"), message);
    assert_eq!(nodes("3,ADD", ",ADD"), "nodes file: line 5: Id is empty");
    assert_eq!(nodes("3,ADD", "3,"), "nodes file: line 5: Op is empty");
    assert_eq!(nodes("\n3,ADD", "\n\n3,ADD"), "nodes file: line 5: the line is blank");
    assert_eq!(nodes("Bufs\n", "Bufs\r"), "nodes file: line 1: the line before ends in a carriage return only");
    let long = "9".repeat(60);
    assert_eq!(nodes("3,ADD", &format!("{long},ADD")), format!("nodes file: line 5: Id is {:?}..., {id}", &long[..40]));
    let edges = EDGES.replace('\n', "\r\n").replacen("2,3", "2,three", 1);
    assert_eq!(refusal(NODES, &edges), format!("edges file: line 3: EndNodeId is \"three\", {id}"));
    let invalid = [NODES.as_bytes(), b"8,\xff,,,,,,\n"].concat();
    assert_eq!(read(&invalid, EDGES.as_bytes()).unwrap_err().to_string(), "nodes file: line 9: Op is not UTF-8 text");
}

#[test]
fn an_unsound_graph_is_reported_as_such() {
    let Err(CsvError::Graph(errors)) = read(NODES.as_bytes(), b"StartNodeId,EndNodeId\n0,2\n2,99\n") else { panic!() };
    assert_eq!(errors.list, [GraphError::EdgeToMissing { place: 1, from: Id(2), to: Id(99), missing: Id(99) }]);
    let edges = b"StartNodeId,EndNodeId\n0,2\n2,99\n";
    assert_eq!(locate(NODES.as_bytes(), edges, &errors.list[0]), Some((Half::Edges, 3)));
    let twice = NODES.replacen("1,ALLOC,7", "0,ALLOC,7", 1);
    let Err(CsvError::Graph(errors)) = read(twice.as_bytes(), EDGES.as_bytes()) else { panic!() };
    assert_eq!(errors.list, [GraphError::DuplicateId { id: Id(0), first: 0, second: 1 }]);
    assert_eq!(locate(twice.as_bytes(), EDGES.as_bytes(), &errors.list[0]), Some((Half::Nodes, 3)));
    let zero = GraphError::ZeroSize { node: Id(3), buf: BufId(0) };
    assert_eq!(locate(NODES.as_bytes(), EDGES.as_bytes(), &zero), Some((Half::Nodes, 5)));
    // A name that spans two lines pushes the rows below it down.
    let spanning = NODES.replacen("UB", "\"U\nB\"", 1);
    assert_eq!(locate(spanning.as_bytes(), EDGES.as_bytes(), &zero), Some((Half::Nodes, 6)));
    assert_eq!(locate(NODES.as_bytes(), EDGES.as_bytes(), &GraphError::Empty), None);
}

#[test]
fn stray_cells_are_told() {
    let nodes = NODES.replacen("0,ALLOC,0,6,UB,,", "0,ALLOC,0,6,UB,MTE2,", 1);
    let (graph, notices) = read(nodes.as_bytes(), EDGES.as_bytes()).unwrap();
    assert_eq!(notices, [Notice::StrayField { field: Field::Pipe, on_cache_node: true, count: 1, first: Id(0) }]);
    let exp = graph.node_by_id(Id(3)).unwrap();
    assert_eq!((graph.cycles(exp), graph.buf(graph.operands(exp)[1]).id), (Some(Cycles(30)), BufId(7)));
}
