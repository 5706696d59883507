"""Graphs for a device: they copy cache rows where numpy cannot reach them, or show that it computes at all.

Kept in ONNX's text form and serialized, so that serving needs no ONNX library; a test holds the two together.
Legend: R rows, H heads, L cache length, K block length, D head_dim in float32 words, n rows that are copied.
"""

import base64

WRITE_TEXT = """<ir_version: 10, opset_import: ["" : 24]>
copy_rows (float[R,H,L,D] cache, float[R,H,K,D] block, int64[1] kept) => (float[R,H,L,D] copied)
<int64[1] start = {0}, int64[1] axis = {2}> {
    part = Slice(block, start, kept, axis)
    copied = TensorScatter<axis = 2>(cache, part)
}"""
"""Writes the first `kept` columns of `block` over those of `cache`: in place where one buffer is bound as both."""

WRITE = base64.b64decode(
    "CAo6jgIKKQoFYmxvY2sKBXN0YXJ0CgRrZXB0CgRheGlzEgRwYXJ0IgVTbGljZToACjMKBWNhY2hlCgRwYXJ0EgZjb3BpZWQiDVRlbnNvclNjYX"
    "R0ZXIqCwoEYXhpcxgCoAECOgASCWNvcHlfcm93cyoOCAEQBzoBAEIFc3RhcnQqDQgBEAc6AQJCBGF4aXNaIwoFY2FjaGUSGgoYCAESFAoDEgFS"
    "CgMSAUgKAxIBTAoDEgFEWiMKBWJsb2NrEhoKGAgBEhQKAxIBUgoDEgFICgMSAUsKAxIBRFoSCgRrZXB0EgoKCAgHEgQKAggBYiQKBmNvcGllZB"
    "IaChgIARIUCgMSAVIKAxIBSAoDEgFMCgMSAURCBAoAEBg="
)

REORDER_TEXT = """<ir_version: 10, opset_import: ["" : 24]>
reorder_rows (float[R,H,L,D] cache, int64[n] sources, int64[n,1] targets) => (float[R,H,L,D] copied) {
    rows = Gather<axis = 0>(cache, sources)
    copied = ScatterND(cache, targets, rows)
}"""
"""Writes rows of `cache` over others: in place where one buffer is bound as both."""

REORDER = base64.b64decode(
    "CAo66QEKLQoFY2FjaGUKB3NvdXJjZXMSBHJvd3MiBkdhdGhlcioLCgRheGlzGACgAQI6AAorCgVjYWNoZQoHdGFyZ2V0cwoEcm93cxIGY29waW"
    "VkIglTY2F0dGVyTkQ6ABIMcmVvcmRlcl9yb3dzWiMKBWNhY2hlEhoKGAgBEhQKAxIBUgoDEgFICgMSAUwKAxIBRFoWCgdzb3VyY2VzEgsKCQgH"
    "EgUKAxIBbloaCgd0YXJnZXRzEg8KDQgHEgkKAxIBbgoCCAFiJAoGY29waWVkEhoKGAgBEhQKAxIBUgoDEgFICgMSAUwKAxIBREIECgAQGA=="
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
