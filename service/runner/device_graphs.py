"""Graphs for a device: one copies device memory, which numpy cannot reach, and one proves that the device computes.

Each is here in ONNX's text form and serialized, so that serving needs no ONNX library; a test compares the two.
Legend: D numbers of one unit, A and B units, n rows of m units that are copied.
"""

import base64

COPY_TEXT = """<ir_version: 10, opset_import: ["" : 15]>
copy_rows (int64[A,D] source, int64[n,1] source_rows, int64[m] source_steps,
    int64[B,D] cache, int64[n,1] target_rows, int64[m] target_steps) => (int64[B,D] copied)
<int64[1] axis = {2}> {
    sources = Add(source_rows, source_steps)
    units = Gather<axis = 0>(source, sources)
    targets = Add(target_rows, target_steps)
    indices = Unsqueeze(targets, axis)
    copied = ScatterND(cache, indices, units)
}"""
"""Copies rows of `source` to rows of `cache`, in place if one buffer is bound as both `cache` and `copied`. All three
may be one buffer, since everything is read before anything is written.

On CUDA one thread of ScatterND copies the numbers of one index, one after the other. So units are small, and the graph
computes the index of each unit of a row itself.

The opset is the last one whose ScatterND has no `reduction`. In later ones CUDA has the same kernel, but warns
"ScatterND with reduction=='none' only guarantees to be correct if indices are not duplicated". Duplicates here are
copies of the same unit."""
COPY = base64.b64decode(
    "CAo6xwMKKwoLc291cmNlX3Jvd3MKDHNvdXJjZV9zdGVwcxIHc291cmNlcyIDQWRkOgAKLwoGc291cmNlCgdzb3VyY2VzEgV1bml0cyIGR2F0aGVyKg"
    "sKBGF4aXMYAKABAjoACisKC3RhcmdldF9yb3dzCgx0YXJnZXRfc3RlcHMSB3RhcmdldHMiA0FkZDoACiUKB3RhcmdldHMKBGF4aXMSB2luZGljZXMi"
    "CVVuc3F1ZWV6ZToACiwKBWNhY2hlCgdpbmRpY2VzCgV1bml0cxIGY29waWVkIglTY2F0dGVyTkQ6ABIJY29weV9yb3dzKg0IARAHOgECQgRheGlzWh"
    "oKBnNvdXJjZRIQCg4IBxIKCgMSAUEKAxIBRFoeCgtzb3VyY2Vfcm93cxIPCg0IBxIJCgMSAW4KAggBWhsKDHNvdXJjZV9zdGVwcxILCgkIBxIFCgMS"
    "AW1aGQoFY2FjaGUSEAoOCAcSCgoDEgFCCgMSAURaHgoLdGFyZ2V0X3Jvd3MSDwoNCAcSCQoDEgFuCgIIAVobCgx0YXJnZXRfc3RlcHMSCwoJCAcSBQ"
    "oDEgFtYhoKBmNvcGllZBIQCg4IBxIKCgMSAUIKAxIBREIECgAQDw=="
)

PROBE_TEXT = """<ir_version: 10, opset_import: ["" : 24]>
probe (float[R,L,D] numbers) => (float[R,L] largest)
<int64[1] axis = {2}> {
    copied = TensorScatter<axis = 1>(numbers, numbers)
    largest = ReduceMax<keepdims = 0>(copied, axis)
}"""
"""Operators that a provider must be able to run: one of the newest opset in use, and one for which CUDA needs cuDNN."""
PROBE = base64.b64decode(
    "CAo6xgEKOAoHbnVtYmVycwoHbnVtYmVycxIGY29waWVkIg1UZW5zb3JTY2F0dGVyKgsKBGF4aXMYAaABAjoACjUKBmNvcGllZAoEYXhpcxIHbGFyZ2"
    "VzdCIJUmVkdWNlTWF4Kg8KCGtlZXBkaW1zGACgAQI6ABIFcHJvYmUqDQgBEAc6AQJCBGF4aXNaIAoHbnVtYmVycxIVChMIARIPCgMSAVIKAxIBTAoD"
    "EgFEYhsKB2xhcmdlc3QSEAoOCAESCgoDEgFSCgMSAUxCBAoAEBg="
)
