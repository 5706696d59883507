# . unpack.sh [FOLDER]: collect the parts that lie in FOLDER, by default here; with the last of them, unpack all in
# /tmp/attend-gpu, and make this shell ready for `python3 -m benchmarks.gpu` in /tmp/attend-gpu/project.
PARTS=1
G=/tmp/attend-gpu
mkdir -p $G/parts $G/lib
cp "${1:-.}"/part.* $G/parts/ 2>/dev/null
if [ ! -d $G/project ] && [ "$(ls $G/parts | wc -l)" = $PARTS ]; then
  cat $G/parts/part.* | xz -dc | tar x -C $G
fi
# CTranslate2 asks for cuBLAS 12; that of CUDA 13 serves it.
for nvidia in $(python3 -c "import nvidia; print(*nvidia.__path__)" 2>/dev/null); do
  for library in "$nvidia"/*/lib/libcublas.so.13; do
    [ -f "$library" ] || continue
    ln -sf "$library" $G/lib/libcublas.so.12
    ln -sf "$(dirname "$library")/libcublasLt.so.13" $G/lib/libcublasLt.so.12
  done
done
export PYTHONPATH=$G/site:$G/project LD_LIBRARY_PATH=$G/lib:${LD_LIBRARY_PATH:-} PYTHONUNBUFFERED=1
