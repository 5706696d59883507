"""Graphs for a device: one copies device memory, which numpy cannot reach, and one proves that the device computes.

Each is here in ONNX's text form and serialized, so that serving needs no ONNX library; a test compares the two.
Legend: D numbers of one unit, A and B units, n blocks of m units that are copied.
"""

import base64

COPY_TEXT = """<ir_version: 10, opset_import: ["" : 15]>
copy_units (int64[A,D] source, int64[n,1] source_places, int64[B,D] cache, int64[n,1] target_places, int64[m] steps)
    => (int64[B,D] copied)
<int64[1] axis = {2}> {
    sources = Add(source_places, steps)
    units = Gather<axis = 0>(source, sources)
    targets = Add(target_places, steps)
    indices = Unsqueeze(targets, axis)
    copied = ScatterND(cache, indices, units)
}"""
"""Copies units of `source` to units of `cache`, in place if one buffer is bound as both `cache` and `copied`. All three
may be one buffer, since everything is read before anything is written.

On CUDA one thread of ScatterND copies the numbers of one index, one after the other. So units are small, and the graph
computes the index of each unit of a block itself.

The opset is the last one whose ScatterND has no `reduction`. In later ones CUDA has the same kernel, but warns
"ScatterND with reduction=='none' only guarantees to be correct if indices are not duplicated". The only duplicates here
are the spare row and the spare place, which are never read."""

COPY = base64.b64decode(
    "CAo6ngMKJgoNc291cmNlX3BsYWNlcwoFc3RlcHMSB3NvdXJjZXMiA0FkZDoACi8KBnNvdXJjZQoHc291cmNlcxIFdW5pdHMiBkdhdGhlcioLCgRheG"
    "lzGACgAQI6AAomCg10YXJnZXRfcGxhY2VzCgVzdGVwcxIHdGFyZ2V0cyIDQWRkOgAKJQoHdGFyZ2V0cwoEYXhpcxIHaW5kaWNlcyIJVW5zcXVlZXpl"
    "OgAKLAoFY2FjaGUKB2luZGljZXMKBXVuaXRzEgZjb3BpZWQiCVNjYXR0ZXJORDoAEgpjb3B5X3VuaXRzKg0IARAHOgECQgRheGlzWhoKBnNvdXJjZR"
    "IQCg4IBxIKCgMSAUEKAxIBRFogCg1zb3VyY2VfcGxhY2VzEg8KDQgHEgkKAxIBbgoCCAFaGQoFY2FjaGUSEAoOCAcSCgoDEgFCCgMSAURaIAoNdGFy"
    "Z2V0X3BsYWNlcxIPCg0IBxIJCgMSAW4KAggBWhQKBXN0ZXBzEgsKCQgHEgUKAxIBbWIaCgZjb3BpZWQSEAoOCAcSCgoDEgFCCgMSAURCBAoAEA8="
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
