internal import Glibc

/// What the process asks of the system.
enum ProcessSettings {
  static func apply() {
    // A runner that is gone shows as a failed write.
    signal(SIGPIPE, SIG_IGN)
    // At once, also if whoever started this process has said otherwise.
    signal(SIGTERM, SIG_DFL)
    // Hundreds of calls over HTTP/1.1 take as many connections.
    var limit = rlimit()
    if getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0, limit.rlim_cur < limit.rlim_max {
      limit.rlim_cur = limit.rlim_max
      _ = setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    }
  }
}
