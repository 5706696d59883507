/* Stand-ins for the CUDA libraries, for machines without a GPU: a device's memory is main memory, copies are made, and
   kernels compute nothing. What else ONNX Runtime's CUDA provider needs is generated: functions that return 0, which
   is success (cuda_stand_ins.py). */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *zeros(size_t size) {
  size_t padded = (size + 511) / 256 * 256;
  return memset(aligned_alloc(256, padded), 0, padded);
}

/* Whether a stream captures, and whether something was done meanwhile that spoils it: nothing may take or return memory,
   or wait. Copies between main memory and the device are refused here too: a graph would read, whenever it is launched,
   what is in that place by then. */
static int captures, spoilt;
enum { hostToDevice = 1, deviceToHost = 2, refused = 900 /* cudaErrorStreamCaptureUnsupported */, invalid = 901 };

static int wait(void) {
  spoilt |= captures;
  return captures ? refused : 0;
}
static int allocate(void **memory, size_t size) {
  *memory = captures ? NULL : zeros(size);
  return wait();
}
static int release(void *memory) {
  if (!captures) free(memory);
  return wait();
}

int cudaMalloc(void **memory, size_t size) { return allocate(memory, size); }
int cudaMallocHost(void **memory, size_t size) { return allocate(memory, size); }
int cudaHostAlloc(void **memory, size_t size, unsigned flags) { return allocate(memory, size); }
int cudaFree(void *memory) { return release(memory); }
int cudaFreeHost(void *memory) { return release(memory); }
int cudaDeviceSynchronize(void) { return wait(); }
int cudaStreamSynchronize(void *stream) { return wait(); }
int cudaEventSynchronize(void *event) { return wait(); }
int cudaMemcpy(void *to, const void *from, size_t size, int kind) {
  memmove(to, from, size);
  return wait();
}
int cudaMemcpyAsync(void *to, const void *from, size_t size, int kind, void *stream) {
  memmove(to, from, size);
  return kind == hostToDevice || kind == deviceToHost ? wait() : 0;
}
int cudaMemset(void *memory, int value, size_t size) {
  memset(memory, value, size);
  return wait();
}
int cudaMemsetAsync(void *memory, int value, size_t size, void *stream) { memset(memory, value, size); return 0; }
int cudaMemGetInfo(size_t *available, size_t *total) { *available = 6ul << 30; *total = 8ul << 30; return 0; }
int cudaPointerGetAttributes(char *attributes, const void *memory) {
  memset(attributes, 0, 32);
  *(int *)attributes = 2; /* cudaMemoryTypeDevice */
  return 0;
}

/* The beginning of cudaDeviceProp. */
struct properties {
  char name[256], uuid[16], luid[8];
  unsigned luidDeviceNodeMask;
  size_t totalGlobalMem, sharedMemPerBlock;
  int regsPerBlock, warpSize;
  size_t memPitch;
  int maxThreadsPerBlock, maxThreadsDim[3], maxGridSize[3];
  size_t totalConstMem;
  int major, minor;
  size_t textureAlignment, texturePitchAlignment;
  int multiProcessorCount;
};

int cudaGetDeviceProperties(struct properties *found, int device) {
  memset(found, 0, 900);
  *found = (struct properties){
      .name = "stand-in", .totalGlobalMem = 8ul << 30, .sharedMemPerBlock = 49152, .regsPerBlock = 65536,
      .warpSize = 32, .maxThreadsPerBlock = 1024, .maxThreadsDim = {1024, 1024, 64},
      .maxGridSize = {2147483647, 65535, 65535}, .major = 8, .minor = 0, .multiProcessorCount = 80};
  return 0;
}
int cudaDeviceGetAttribute(int *value, int attribute, int device) {
  switch (attribute) {
    case 16: *value = 80; break; /* multiprocessors */
    case 75: *value = 8; break;  /* compute capability, major */
    case 76: *value = 0; break;  /* minor */
    default: *value = 1024;
  }
  return 0;
}
int cudaGetDeviceCount(int *count) { *count = 1; return 0; }
int cudaGetDevice(int *device) { *device = 0; return 0; }
int cudaDriverGetVersion(int *version) { *version = 13000; return 0; }
int cudaRuntimeGetVersion(int *version) { *version = 13000; return 0; }
const char *cudaGetErrorName(int error) { return "an error of the stand-in"; }
const char *cudaGetErrorString(int error) { return "an error of the stand-in"; }

int cudaStreamCreate(void **stream) { *stream = zeros(8); return 0; }
int cudaStreamCreateWithFlags(void **stream, unsigned flags) { *stream = zeros(8); return 0; }
int cudaStreamIsCapturing(void *stream, int *status) { *status = captures; return 0; }

/* What a stream captures is nothing; each launch and each end of a graph is told to the file that the environment names. */
static int tell(const char *word) {
  FILE *log = getenv("CUDA_STAND_IN_LOG") ? fopen(getenv("CUDA_STAND_IN_LOG"), "a") : NULL;
  if (log != NULL) {
    fprintf(log, "%s\n", word);
    fclose(log);
  }
  return 0;
}
int cudaStreamBeginCapture(void *stream, int mode) { captures = 1; return 0; }
int cudaStreamEndCapture(void *stream, void **graph) {
  int was_spoilt = spoilt;
  captures = spoilt = 0;
  *graph = zeros(8);
  return was_spoilt ? invalid : tell("captured");
}
int cudaGraphInstantiate(void **executable, void *graph, unsigned long long flags) { *executable = zeros(8); return 0; }
int cudaGraphLaunch(void *executable, void *stream) { return tell("launched"); }
int cudaGraphExecDestroy(void *executable) { return tell("destroyed"); }

int cudaEventCreate(void **event) { *event = zeros(8); return 0; }
int cudaEventCreateWithFlags(void **event, unsigned flags) { *event = zeros(8); return 0; }

void **__cudaRegisterFatBinary(void *binary) {
  static void *handle[4];
  return handle;
}
int __cudaPopCallConfiguration(unsigned *grid, unsigned *block, size_t *shared, void **stream) {
  for (int i = 0; i < 3; i++) grid[i] = block[i] = 1;
  *shared = 0;
  *stream = NULL;
  return 0;
}

int cublasCreate_v2(void **handle) { *handle = zeros(8); return 0; }
int cublasGetMathMode(void *handle, int *mode) { *mode = 0; return 0; }
const char *cublasGetStatusName(int status) { return "a status of the stand-in"; }
const char *cublasGetStatusString(int status) { return "a status of the stand-in"; }
int cublasLtCreate(void **handle) { *handle = zeros(8); return 0; }

int cudnnCreate(void **handle) { *handle = zeros(64); return 0; }
int cudnnCreateTensorDescriptor(void **descriptor) { *descriptor = zeros(64); return 0; }
int cudnnCreateReduceTensorDescriptor(void **descriptor) { *descriptor = zeros(64); return 0; }
int cudnnGetReductionIndicesSize(void *handle, void *reduction, void *from, void *to, size_t *size) { *size = 256; return 0; }
int cudnnGetReductionWorkspaceSize(void *handle, void *reduction, void *from, void *to, size_t *size) { *size = 256; return 0; }
const char *cudnnGetErrorString(int status) { return "a status of the stand-in"; }
size_t cudnnGetVersion(void) { return 91200; }
