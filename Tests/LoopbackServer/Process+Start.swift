public import Foundation
internal import Synchronization

extension Process {
  private static let starts = Mutex(())

  /// Starts a process while no other one is being started.
  ///
  /// Use it instead of `run()`, also for processes that end soon. On Linux, Foundation takes a process for ended when a socket
  /// that the process inherits is closed in all processes. Another process that is started at the same moment may inherit the
  /// socket, too, as well as pipes; then the first one seems to run until the other one has ended (see issue 4795 of
  /// swift-corelibs-foundation). What a process itself starts must close the socket, as Python's `subprocess` does.
  ///
  /// - Parameter configure: Says what to run, and makes the pipes.
  /// - Returns: The process, and what `configure` returns.
  public static func start<Pipes>(
    _ configure: (Process) throws -> Pipes
  ) throws -> (process: Process, pipes: Pipes) {
    try self.starts.withLock { _ in
      let process = Process()
      let pipes = try configure(process)
      try process.run()
      return (process, pipes)
    }
  }
}
