internal import Connect

/// The metrics that gRPC's own libraries have of calls.
///
/// <https://grpc.io/docs/guides/opentelemetry-metrics/>, gRFC A66 and A96.
enum GRPCCallMetric: Int, CaseIterable {
  case attemptStarted, attemptDuration, attemptSent, attemptReceived
  case callDuration, retries, transparentRetries, hedges, retryDelay

  var description: MetricDescription {
    let call = [GRPCLabels.method, GRPCLabels.target]
    let end = call + [GRPCLabels.status]
    return switch self {
    case .attemptStarted:
      .grpc(
        "client.attempt.started",
        .counter,
        "{attempt}",
        call,
        "The total number of RPC attempts started, including those that have not completed."
      )
    case .attemptDuration:
      .grpc(
        "client.attempt.duration",
        .histogram,
        "s",
        end,
        "How long an attempt took, with picking an endpoint."
      )
    case .attemptSent:
      .grpc(
        "client.attempt.sent_total_compressed_message_size",
        .histogram,
        "By",
        end,
        "Bytes of the request messages of an attempt: compressed, without framing."
      )
    case .attemptReceived:
      .grpc(
        "client.attempt.rcvd_total_compressed_message_size",
        .histogram,
        "By",
        end,
        "Bytes of the response messages of an attempt: compressed, without framing."
      )
    case .callDuration:
      .grpc("client.call.duration", .histogram, "s", end, "How long a call took for its caller.")
    case .retries:
      .grpc("client.call.retries", .histogram, "{retry}", call, "Retries of a call that has any.")
    case .transparentRetries:
      .grpc(
        "client.call.transparent_retries",
        .histogram,
        "{transparent_retry}",
        call,
        "Transparent retries of a call that has any."
      )
    case .hedges:
      .grpc("client.call.hedges", .histogram, "{hedge}", call, "Hedges of a call that has any.")
    case .retryDelay:
      .grpc(
        "client.call.retry_delay",
        .histogram,
        "s",
        call,
        "For how long no attempt of the call was running between attempts."
      )
    }
  }
}

/// The metrics that gRPC's own libraries have of connections: gRFC A94, and the names of A78, which A94 replaces.
enum GRPCConnectionMetric: Int, CaseIterable {
  case disconnections, succeeded, failed, open
  case pickFirstDisconnections, pickFirstSucceeded, pickFirstFailed

  var description: MetricDescription {
    let labels = [GRPCLabels.target]
    return switch self {
    case .disconnections:
      .grpc(
        "subchannel.disconnections",
        .counter,
        "{disconnection}",
        labels,
        "Connections that took calls and are gone."
      )
    case .succeeded:
      .grpc("subchannel.connection_attempts_succeeded", .counter, "{attempt}", labels, "Connections made.")
    case .failed:
      .grpc(
        "subchannel.connection_attempts_failed",
        .counter,
        "{attempt}",
        labels,
        "Connections that failed."
      )
    case .open:
      .grpc(
        "subchannel.open_connections",
        .upDownCounter,
        "{connection}",
        labels,
        "Connections that are open."
      )
    case .pickFirstDisconnections:
      .grpc(
        "lb.pick_first.disconnections",
        .counter,
        "{disconnection}",
        labels,
        "The older name of the same."
      )
    case .pickFirstSucceeded:
      .grpc(
        "lb.pick_first.connection_attempts_succeeded",
        .counter,
        "{attempt}",
        labels,
        "The older name of the same."
      )
    case .pickFirstFailed:
      .grpc(
        "lb.pick_first.connection_attempts_failed",
        .counter,
        "{attempt}",
        labels,
        "The older name of the same."
      )
    }
  }
}

enum GRPCLabels {
  static let method = "grpc.method"
  static let target = "grpc.target"
  static let status = "grpc.status"
  /// The zone of the endpoint that a call went to (gRFC A78).
  static let locality = "grpc.lb.locality"
  /// The cluster that a call went to (gRFC A89).
  static let backendService = "grpc.lb.backend_service"
  /// This library's own: gRPC counts drops in load reports only.
  static let dropCategory = "rpc.client.channel.drop.category"
  /// Stands for methods and targets that are left out since there would be too many different ones.
  static let other = "other"
}

extension MetricDescription {
  fileprivate static func grpc(
    _ name: String,
    _ kind: Kind,
    _ unit: String,
    _ labels: [String],
    _ summary: String
  ) -> MetricDescription {
    MetricDescription(name: "grpc.\(name)", kind: kind, unit: unit, labels: labels, summary: summary)
  }
}

extension Origin {
  /// The value of `grpc.target`: the URI that clients of gRPC's own libraries have for this server (gRFC A66).
  var grpcTarget: String {
    guard self.scheme.isTCP else { return self.description }
    let host = self.host.utf8.contains(UInt8(ascii: ":")) ? "[\(self.host)]" : self.host
    return "dns:///\(host):\(self.port)"
  }
}
