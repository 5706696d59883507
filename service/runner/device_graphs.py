"""Graphs for a device: they copy what numpy cannot reach, or show that it computes at all.

Kept in ONNX's text form and serialized, so that serving needs no ONNX library; a test holds the two together.
Legend: D numbers of one piece, A and B pieces, n pieces that are copied.
"""

import base64

COPY_TEXT = """<ir_version: 10, opset_import: ["" : 15]>
copy_pieces (float[A,D] source, int64[n] source_places, float[B,D] cache, int64[n,1] target_places)
    => (float[B,D] copied) {
    pieces = Gather<axis = 0>(source, source_places)
    copied = ScatterND(cache, target_places, pieces)
}"""
"""Writes pieces of `source` over pieces of `cache`: in place where one buffer is bound as both `cache` and `copied`.
They may all be one buffer, since everything is read before anything is written.

The opset is the last one whose ScatterND has no `reduction`. Where it has one, CUDA has the same kernel and warns
"ScatterND with reduction=='none' only guarantees to be correct if indices are not duplicated". The only duplicates here
are the spare row and the spare place, which nobody reads."""

COPY = base64.b64decode(
    "CAo6jQIKNgoGc291cmNlCg1zb3VyY2VfcGxhY2VzEgZwaWVjZXMiBkdhdGhlcioLCgRheGlzGACgAQI6AAozCgVjYWNoZQoNdGFyZ2V0X3BsYWNl"
    "cwoGcGllY2VzEgZjb3BpZWQiCVNjYXR0ZXJORDoAEgtjb3B5X3BpZWNlc1oaCgZzb3VyY2USEAoOCAESCgoDEgFBCgMSAURaHAoNc291cmNlX3Bs"
    "YWNlcxILCgkIBxIFCgMSAW5aGQoFY2FjaGUSEAoOCAESCgoDEgFCCgMSAURaIAoNdGFyZ2V0X3BsYWNlcxIPCg0IBxIJCgMSAW4KAggBYhoKBmNv"
    "cGllZBIQCg4IARIKCgMSAUIKAxIBREIECgAQDw=="
)

PROBE_TEXT = """<ir_version: 10, opset_import: ["" : 24]>
probe (float[R,L,D] numbers) => (float[R,L] largest)
<int64[1] axis = {2}> {
    copied = TensorScatter<axis = 1>(numbers, numbers)
    largest = ReduceMax<keepdims = 0>(copied, axis)
}"""
"""What a provider must be able to run: an operator of the newest opset in use, and one for which CUDA needs cuDNN."""

PROBE = base64.b64decode(
    "CAo6xgEKOAoHbnVtYmVycwoHbnVtYmVycxIGY29waWVkIg1UZW5zb3JTY2F0dGVyKgsKBGF4aXMYAaABAjoACjUKBmNvcGllZAoEYXhpcxIHbGFyZ2"
    "VzdCIJUmVkdWNlTWF4Kg8KCGtlZXBkaW1zGACgAQI6ABIFcHJvYmUqDQgBEAc6AQJCBGF4aXNaIAoHbnVtYmVycxIVChMIARIPCgMSAVIKAxIBTAoD"
    "EgFEYhsKB2xhcmdlc3QSEAoOCAESCgoDEgFSCgMSAUxCBAoAEBg="
)
