/// What an interceptor observes attempts with, see ``Interceptor/attemptFunction()``.
public typealias AttemptFunction = (AttemptEvent) -> Void

/// What happens to an attempt of a call on the wire.
///
/// Each ``started(_:)`` is followed by one ``ended(_:)`` with the same ``AttemptStart/number`` and ``AttemptStart/kind``.
/// Attempts of a call that hedges overlap. The end of an attempt that the call abandons may come after the start of the
/// next attempt, and after the outcome, but before ``CallFunction/endFunction``.
public enum AttemptEvent: Sendable, Hashable {
  /// The attempt is about to go to the network. It may yet wait there for a connection.
  case started(AttemptStart)
  /// The attempt is over.
  case ended(AttemptRecord)
}

/// Why there is an attempt.
public enum AttemptKind: Sendable, Hashable, CaseIterable {
  /// The first attempt of the call that goes to the network.
  case original
  /// An interceptor has asked for it.
  case retry
  /// It was started while earlier attempts run, as the call's ``HedgingPolicy`` says.
  case hedge
  /// It replaces an attempt that the server certainly did not process.
  case transparentRetry
}

/// The start of an attempt.
public struct AttemptStart: Sendable, Hashable {
  /// The number of the attempt: 1 for the first. A transparent retry has the number of the attempt that it replaces. Attempts that
  /// an interceptor has failed before they got to the network have numbers, too.
  public var number: Int
  /// Why there is this attempt.
  public var kind: AttemptKind
  /// For how long no attempt of the call was running before this one; zero for the first attempt, and while others run.
  public var idleTime: Duration

  /// A start with the given facts, for tests of interceptors.
  public init(number: Int, kind: AttemptKind = .original, idleTime: Duration = .zero) {
    self.number = number
    self.kind = kind
    self.idleTime = idleTime
  }
}

/// The end of an attempt, and what it carried.
public struct AttemptRecord: Sendable, Hashable {
  /// The number of the attempt, as in ``AttemptStart/number``.
  public var number: Int
  /// Why there was this attempt.
  public var kind: AttemptKind
  /// How it ended. ``Code/canceled`` if the call had no further use for it, ``Code/deadlineExceeded`` if the call's
  /// deadline passed.
  public var code: Code
  /// From its start to its end on the wire, with the time that it waited for a connection.
  public var duration: Duration
  /// The size of the request's messages as they were handed to the transport, in bytes: compressed, without what frames them. 0 for a
  /// request that goes as GET.
  public var sentMessageBytes: Int
  /// The size of the response's messages as they arrived, in bytes: compressed, without what frames them.
  public var receivedMessageBytes: Int

  /// A record with the given facts, for tests of interceptors.
  public init(
    number: Int,
    kind: AttemptKind = .original,
    code: Code = .ok,
    duration: Duration = .zero,
    sentMessageBytes: Int = 0,
    receivedMessageBytes: Int = 0
  ) {
    self.number = number
    self.kind = kind
    self.code = code
    self.duration = duration
    self.sentMessageBytes = sentMessageBytes
    self.receivedMessageBytes = receivedMessageBytes
  }
}
