import Connect
import ConnectChannels
import Foundation
import Histogram

/// The results of a load, for people and for programs.
struct LoadReport {
  var duration: Duration
  var series: LoadSeries
  /// The endpoints that calls went to, with their connections.
  var endpoints: [ChannelSnapshot.Endpoint]

  private var total: LoadResults { self.series.total }
  private var rate: Double { Double(self.total.count) / max(self.duration / .seconds(1), 1e-9) }
  private static let percentiles = [50, 75, 90, 95, 99, 99.9, 100]

  var failures: Int { self.total.count - (self.total.codes[.ok] ?? 0) }

  private var codes: [(code: Code, count: Int)] {
    self.total.codes.map { ($0.key, $0.value) }.sorted {
      ($1.count, $0.code.rawValue) < ($0.count, $1.code.rawValue)
    }
  }

  /// Each address once, summed over the event loops, each of which has separate connections.
  private var addresses: [JSONReport.Address] {
    var addresses: [JSONReport.Address] = []
    for endpoint in self.endpoints {
      let (calls, connections) = (endpoint.startedCalls, endpoint.openedConnections)
      if let index = addresses.firstIndex(where: { $0.address == endpoint.address }) {
        addresses[index].calls += calls
        addresses[index].connections += connections
      } else {
        addresses.append(.init(address: endpoint.address, calls: calls, connections: connections))
      }
    }
    return addresses
  }

  // MARK: For people

  var text: String {
    var lines = [
      "\(self.total.count) calls in \(Self.seconds(self.duration)), \(Self.number(self.rate)) a second",
      "",
      "latency",
    ]
    for percentile in Self.percentiles {
      let name = percentile == 100 ? "max" : "p\(percentile.formatted())"
      lines.append(
        "  \(name.padded(6)) \(self.total.latency(at: percentile).milliseconds.padded(12, left: true))"
      )
    }
    lines += ["", "codes"]
    for (code, count) in self.codes {
      let message = self.total.messages[code].map { "  (\(Console.line(Failure.advising($0))))" } ?? ""
      lines.append("  \(code.name.padded(18)) \(String(count).padded(10, left: true))\(message)")
    }
    if !self.endpoints.isEmpty {
      lines += ["", "addresses"]
      for entry in self.addresses.prefix(20) {
        let address = Console.line(entry.address).padded(28)
        lines.append("  \(address) \(entry.calls) calls, \(entry.connections) connections")
      }
    }
    let sent = Self.bytes(self.total.requestBytes)
    lines += ["", "bodies: \(sent) sent, \(Self.bytes(self.total.responseBytes)) received"]
    if self.series.points.count > 1 {
      lines += ["", "over time, to \(Self.seconds(self.duration))"]
      lines += self.plot("calls/s", self.series.points.map(\.rate)) { Self.number($0) }
      lines += self.plot("p50", self.series.points.map { $0.median / .milliseconds(1) }) {
        "\(Self.number($0)) ms"
      }
      lines += self.plot("p99", self.series.points.map { $0.p99 / .milliseconds(1) }) {
        "\(Self.number($0)) ms"
      }
      if self.failures > 0 {
        lines += self.plot("failed", self.series.points.map { Double($0.failures) }) { Self.number($0) }
      }
    }
    return lines.joined(separator: "\n")
  }

  private func plot(_ name: String, _ values: [Double], _ label: (Double) -> String) -> [String] {
    let width = 60
    let size = max((values.count + width - 1) / width, 1)
    let groups = stride(from: 0, to: values.count, by: size).map { start in
      values[start..<min(start + size, values.count)].max() ?? 0
    }
    return ["  \(name.padded(8)) \(Columns.line(groups))  to \(label(values.max() ?? 0))"]
  }

  // MARK: For programs

  func json() throws -> String {
    var latencies: [String: Double] = ["mean": self.total.latencies.mean / 1e3]
    for percentile in Self.percentiles {
      let name = percentile == 100 ? "max" : "p\(percentile.formatted())"
      latencies[name] = self.total.latency(at: percentile) / .milliseconds(1)
    }
    let report = JSONReport(
      calls: self.total.count,
      failures: self.failures,
      seconds: self.duration / .seconds(1),
      callsPerSecond: self.rate,
      latencyMilliseconds: latencies,
      codes: Dictionary(uniqueKeysWithValues: self.total.codes.map { ($0.key.name, $0.value) }),
      addresses: self.addresses,
      requestBytes: self.total.requestBytes,
      responseBytes: self.total.responseBytes,
      series: self.series.points.map {
        JSONReport.Point(
          seconds: $0.time / .seconds(1),
          callsPerSecond: $0.rate,
          p50Milliseconds: $0.median / .milliseconds(1),
          p99Milliseconds: $0.p99 / .milliseconds(1),
          failures: $0.failures
        )
      }
    )
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .prettyPrinted]
    return String(decoding: try encoder.encode(report), as: UTF8.self)
  }

  private struct JSONReport: Encodable {
    struct Point: Encodable {
      var seconds: Double
      var callsPerSecond: Double
      var p50Milliseconds: Double
      var p99Milliseconds: Double
      var failures: Int
    }

    struct Address: Encodable {
      var address: String
      var calls: Int
      var connections: Int
    }

    var calls: Int
    var failures: Int
    var seconds: Double
    var callsPerSecond: Double
    var latencyMilliseconds: [String: Double]
    var codes: [String: Int]
    var addresses: [Address]
    var requestBytes: Int
    var responseBytes: Int
    var series: [Point]
  }

  // MARK: Numbers

  static func number(_ value: Double) -> String {
    value >= 100 ? String(Int(value.rounded())) : String(format: value >= 10 ? "%.1f" : "%.2f", value)
  }

  private static func seconds(_ duration: Duration) -> String {
    String(format: "%.1f s", duration / .seconds(1))
  }

  private static func bytes(_ count: Int) -> String {
    switch count {
    case 10_000_000...: "\(count / 1_000_000) MB"
    case 10_000...: "\(count / 1_000) kB"
    default: "\(count) bytes"
    }
  }
}

/// Numbers as a line of small columns.
enum Columns {
  private static let characters: [Character] = ["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"]

  static func line(_ values: [Double]) -> String {
    let top = values.max() ?? 0
    return String(
      values.map { value in
        guard top > 0 else { return self.characters[0] }
        return self.characters[min(Int(value / top * 8), 7)]
      }
    )
  }
}
