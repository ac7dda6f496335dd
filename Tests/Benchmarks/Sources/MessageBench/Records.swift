internal import BenchMessages
internal import CBenchMessages
internal import ConnectProtobufC
internal import Foundation
internal import NIOCore

/// The messages that are measured.
enum Records {
  /// 15 fields, about 1 kB.
  static func record(_ index: Int) -> Connect_Bench_V1_Record {
    .with {
      $0.id = "3f2504e0-4f89-41d3-9a0c-0305e82c3\(100 + index % 900)"
      $0.title = "Quarterly report, \(index)"
      $0.description_p =
        "What the teams have done and what is left to do; with the figures of the last four quarters, for those "
        + "who read no further than the first page. Offices: Zürich, São Paulo, 東京. The figures are those of the books "
        + "at the end of each quarter, before tax, in thousands; where an office changed its currency, earlier quarters "
        + "are converted at the rate of the day of the change, as the auditors have asked for in their last letter."
      $0.state = .open
      $0.createdMs = 1_700_000_000_000 + Int64(index)
      $0.score = 0.75 + Double(index)
      $0.isActive = true
      $0.revision = 1 << 40 + UInt64(index)
      $0.offset = -12_345
      $0.digest = Data((0..<64).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ index) })
      $0.tags = ["finance", "quarterly", "internal-use-only", "english", "reviewed"]
      $0.samples = (0..<16).map { Int64($0 * $0 * 1000) }
      $0.labels = ["team": "finance", "region": "europe-west", "cost-centre": "0815"]
      $0.owner = .with {
        $0.name = "Ada Lovelace"
        $0.email = "ada.lovelace@analytical-engines.example"
        $0.number = 42
      }
      $0.items = (0..<5).map { item in
        .with {
          $0.sku = "SKU-\(1_000_000 + item)"
          $0.count = UInt32(item + 1)
          $0.price = 19.99 * Double(item + 1)
        }
      }
    }
  }

  /// About 1 MB.
  static var large: Connect_Bench_V1_Records {
    .with { $0.records = (0..<1000).map(Self.record) }
  }
}

extension Connect_Bench_V1_Record {
  /// Reads every field; the sum keeps the compiler from leaving that out.
  var sumOfAll: Int {
    var sum = self.id.utf8.count + self.title.utf8.count + self.description_p.utf8.count
    sum &+= self.state.rawValue + Int(self.createdMs) + Int(self.score) + (self.isActive ? 1 : 0)
    sum &+= Int(truncatingIfNeeded: self.revision) + Int(self.offset) + self.digest.count
    for tag in self.tags { sum &+= tag.utf8.count }
    for sample in self.samples { sum &+= Int(sample) }
    for (key, value) in self.labels { sum &+= key.utf8.count + value.utf8.count }
    sum &+= self.owner.name.utf8.count + self.owner.email.utf8.count + Int(self.owner.number)
    for item in self.items { sum &+= item.sku.utf8.count + Int(item.count) + Int(item.price) }
    return sum
  }
}

extension CMessage<Connect__Bench__V1__Record> {
  /// As that of SwiftProtobuf's message: strings, bytes and lists come out as Swift's.
  var sumOfAll: Int {
    var sum = self.id.utf8.count + self.title.utf8.count + self.description.utf8.count
    sum &+= Int(self.state.rawValue) + Int(self.created_ms) + Int(self.score) + Int(self.is_active)
    sum &+= Int(truncatingIfNeeded: self.revision) + Int(self.offset) + self.digest.readableBytes
    for tag in self.list(\.tags, count: \.n_tags) { sum &+= tag.utf8.count }
    for sample in self.list(\.samples, count: \.n_samples) { sum &+= Int(sample) }
    for entry in self.list(\.labels, count: \.n_labels) {
      sum &+= entry.key.utf8.count + entry.value.utf8.count
    }
    if let owner = self.owner {
      sum &+= owner.name.utf8.count + owner.email.utf8.count + Int(owner.number)
    }
    for item in self.list(\.items, count: \.n_items) {
      sum &+= item.sku.utf8.count + Int(item.count) + Int(item.price)
    }
    return sum
  }
}
