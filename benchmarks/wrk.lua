-- Bodies drawn at random from a file, one a line. With a think time, each connection waits before every request for an
-- exponentially distributed while, so that many connections together send requests at random at a steady rate.
-- Arguments: file of bodies, mean think time in milliseconds (0 for none), seed.

local requests, think_ms = {}, 0

function init(arguments)
   for body in io.lines(arguments[1]) do
      requests[#requests + 1] = wrk.format("POST", nil, { ["Content-Type"] = "application/json" }, body)
   end
   think_ms = tonumber(arguments[2])
   math.randomseed(tonumber(arguments[3]))
   if think_ms == 0 then
      delay = nil
   end
end

function request()
   return requests[math.random(#requests)]
end

function delay()
   return math.floor(-think_ms * math.log(1 - math.random()) + 0.5)
end

function done(summary, latency)
   local errors = summary.errors
   io.write(string.format(
      '{"requests": %d, "seconds": %f, "mean_ms": %f, "p50_ms": %f, "p95_ms": %f, "p99_ms": %f, "failed": %d}\n',
      summary.requests, summary.duration / 1e6, latency.mean / 1e3,
      latency:percentile(50) / 1e3, latency:percentile(95) / 1e3, latency:percentile(99) / 1e3,
      errors.connect + errors.read + errors.write + errors.status + errors.timeout
   ))
end
