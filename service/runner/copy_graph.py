"""A graph that copies cache rows on the device they live on, where numpy cannot reach them.

Kept in ONNX's text form and serialized, so that serving needs no ONNX library; a test holds the two together.
Legend: R rows, H heads, L cache length, K block length, D head_dim in float32 words.
"""

import base64

TEXT = """<ir_version: 10, opset_import: ["" : 24]>
copy_rows (float[R,H,L,D] cache, float[R,H,K,D] block, int64[1] kept) => (float[R,H,L,D] copied)
<int64[1] start = {0}, int64[1] axis = {2}> {
    part = Slice(block, start, kept, axis)
    copied = TensorScatter<axis = 2>(cache, part)
}"""
"""Writes the first `kept` columns of `block` over those of `cache`: in place where one buffer is bound as both."""

COPY_GRAPH = base64.b64decode(
    "CAo6jgIKKQoFYmxvY2sKBXN0YXJ0CgRrZXB0CgRheGlzEgRwYXJ0IgVTbGljZToACjMKBWNhY2hlCgRwYXJ0EgZjb3BpZWQiDVRl"
    "bnNvclNjYXR0ZXIqCwoEYXhpcxgCoAECOgASCWNvcHlfcm93cyoOCAEQBzoBAEIFc3RhcnQqDQgBEAc6AQJCBGF4aXNaIwoFY2Fj"
    "aGUSGgoYCAESFAoDEgFSCgMSAUgKAxIBTAoDEgFEWiMKBWJsb2NrEhoKGAgBEhQKAxIBUgoDEgFICgMSAUsKAxIBRFoSCgRrZXB0"
    "EgoKCAgHEgQKAggBYiQKBmNvcGllZBIaChgIARIUCgMSAVIKAxIBSAoDEgFMCgMSAURCBAoAEBg="
)
