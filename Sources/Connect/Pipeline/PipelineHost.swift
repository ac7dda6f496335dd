package import Logging

/// The call around a ``Pipeline``.
package protocol PipelineHost: VisitHost {
  var pipeline: Pipeline { get }
  var environment: any HookEnvironment { get }
  var executor: any CallExecutor { get }
  /// As ``hasEnded``, on the executor.
  var isOver: Bool { get }

  /// Takes the end that has passed all stages.
  func finish(with end: ResultPart)
  /// Ends the call if its deadline has passed, even if the timer has not fired yet.
  func endIfDeadlineHasPassed() -> Bool

  /// A hook has returned without proceeding, or an async interceptor has received a part.
  func hookWaits()
  /// Lets the pipeline continue: something has changed.
  func pump()
  /// Runs `work` of an async interceptor with the pipeline, once no hook is on the stack.
  func perform(_ work: @escaping (Pipeline) -> Void)
}

extension PipelineHost {
  /// Stops debug builds where the caller is not on the call's executor. Release builds do not even look for it.
  @inline(__always)
  func assertIsCurrent() {
    assert(self.executor.isCurrent, "a call was touched outside of its executor")
  }

  package var method: MethodInfo { self.environment.info }
  package var taskExecutor: any TaskExecutor { self.environment.taskExecutor }
  package var retryCause: ConnectError? { self.pipeline.retryCause }

  package func logIgnored(_ what: String) {
    self.environment.logger.debug(
      "ignored: the call or the attempt is over, or the hook has proceeded before",
      metadata: ["rpc.method": "\(self.method.path)", "hook": "\(what)"]
    )
  }

  package func hookDid(_ action: HookAction, _ visit: Visit) {
    if let report = visit.metricsReport {
      report.hookDid(action, visit, self)
    } else if self.isOver {
      self.logIgnored("the call is over")
    } else {
      self.pipeline.hookDid(action, visit, self)
    }
  }

  package func pump() {
    self.executor.assertIsCurrent()
    if !self.isOver { self.pipeline.move(self) }
  }

  package func perform(_ work: @escaping (Pipeline) -> Void) {
    if !self.isOver { self.pipeline.perform(work, self) }
  }
}

/// The environment of a call's hooks.
package protocol HookEnvironment: Sendable {
  var info: MethodInfo { get }
  var logger: Logger { get }
  /// Where tasks of hooks run.
  var taskExecutor: any TaskExecutor { get }
}

extension Pipeline {
  /// What surrounds a pipeline, except for the call itself.
  package struct Surroundings {
    let outside: any PipelineOutside
    let inside: any PipelineInside
    let codec: any PipelineCodec
    /// What to bind or measure around hooks; nil for nothing.
    let inheritance: Inheritance?
    /// How many bytes of a stream's request are kept for another attempt.
    let maximumReplayBytes: Int

    package init(
      outside: any PipelineOutside,
      inside: any PipelineInside,
      codec: any PipelineCodec,
      inheritance: Inheritance?,
      maximumReplayBytes: Int
    ) {
      self.outside = outside
      self.inside = inside
      self.codec = codec
      self.inheritance = inheritance
      self.maximumReplayBytes = maximumReplayBytes
    }
  }
}

/// The caller, outside of the first stage.
package protocol PipelineOutside: AnyObject {
  /// Whether the caller has sent something that was not taken yet.
  var hasOutgoing: Bool { get }
  /// The next part of the request that the caller has sent; nil for none.
  ///
  /// - Parameter isObsolete: Whether sending more is useless.
  func takeOutgoing(isObsolete: @autoclosure () -> Bool) -> RequestPart?
  /// The taken part has gone inwards as far as it can for now.
  func outgoingWasTaken()

  /// How many results the caller wants.
  var demand: Int { get }
  /// Takes a result that has passed all stages and is not the end.
  func deliver(_ result: ResultPart)

  /// Runs a job of an async interceptor where the call was made.
  func run(_ job: Job, on executor: any CallExecutor)
}

/// The attempts, inside of the last stage.
package protocol PipelineInside: AnyObject {
  /// The running attempt; nil if several run.
  var running: (any PipelineAttempt)? { get }
  /// The HTTP status of the running attempt, if its response's head has arrived.
  var httpStatus: Int? { get }

  /// Takes a part of the request that has passed all stages; a head starts an attempt.
  func transmit(_ part: consuming RequestPart, _ host: any PipelineHost)
  /// The next result that has arrived; nil if more has to arrive.
  ///
  /// - Parameter forByteHooks: Whether byte hooks see it.
  func takeArrived(_ host: any PipelineHost, forByteHooks: Bool) -> ResultPart?
  /// Abandons the attempts on the wire.
  func drop()

  /// Takes one retry from the cap. False if the cap is reached, or if the delay would pass the deadline.
  func takeRetry(after delay: Duration, _ host: any PipelineHost) -> Bool
  /// Runs `work` after a delay, unless the call is over by then.
  func afterDelay(_ delay: Duration, _ host: any PipelineHost, _ work: @escaping () -> Void)

  /// Takes the hooks for metrics, outermost first.
  func add(_ hooks: [MetricsReport.Hook])
}

/// An attempt that runs.
package protocol PipelineAttempt: AnyObject {
  /// Whether request messages can be sent without piling up.
  var hasRoom: Bool { get }
  /// Whether the response has ended.
  var isOver: Bool { get }
}

/// Where messages become bytes, and bytes messages.
package protocol PipelineCodec: AnyObject {
  /// The message's bytes, in a part of bytes.
  ///
  /// - Parameter forByteHooks: Whether byte hooks see the request.
  func encode(_ part: consuming RequestPart, forByteHooks: Bool) throws(ConnectError) -> RequestPart
  /// The message in the bytes of a result.
  ///
  /// - Parameter httpStatus: The HTTP status of the response, for errors.
  func decode(_ result: consuming ResultPart, _ httpStatus: @autoclosure () -> Int?) throws(ConnectError)
    -> ResultPart
}

/// The interceptors of a call.
package protocol InterceptorSource: AnyObject {
  var count: Int { get }
  /// Whether the call has ended, so that no more interceptors need be asked.
  var isOver: Bool { get }
  /// Asks an interceptor for its call hooks, and returns the interceptor.
  func askForCallHooks(_ index: Int) -> any Interceptor
}

extension Visit {
  /// Whether a pipeline waits for the hook's action.
  package func isAwaited(in pipeline: Pipeline) -> Bool {
    HookHolders(in: pipeline).holder(of: self.place, self.number) != nil
  }

  /// The report whose metrics the hook received; nil for other hooks.
  package var metricsReport: MetricsReport? {
    if case .metrics(let report) = self.place { report as? MetricsReport } else { nil }
  }
}
