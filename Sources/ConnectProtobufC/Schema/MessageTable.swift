internal import CProtobufC
internal import Synchronization

/// What decoding has to know of a type of messages, side by side in memory: reading it takes no reference counting.
///
/// Invariant: as for ``FieldSchema``. `record` stands in the memory of a ``MessageTables`` that whoever has a table keeps.
/// It is initialised before anybody but the tables sees it, and does not change once its graph is linked.
struct MessageTable: @unchecked Sendable, Equatable {
  struct Record {
    let descriptor: MessageDescriptorPointer
    let size: Int
    let emptyMessage: UnsafeRawPointer
    let fields: FieldList
    let countedCount: Int
    let containsRequired: Bool
    // Not `unowned(unsafe)`, for the reason given at ``FieldSchema/Record``.
    var schema: Unmanaged<MessageSchema>?
  }

  private let record: UnsafeMutablePointer<Record>

  fileprivate init(_ record: UnsafeMutablePointer<Record>) {
    self.record = record
  }

  @inline(__always) var descriptor: MessageDescriptorPointer { self.record.pointee.descriptor }

  /// The bytes of the struct.
  @inline(__always) var size: Int { self.record.pointee.size }

  /// An empty message, to be copied.
  @inline(__always) var emptyMessage: UnsafeRawPointer { self.record.pointee.emptyMessage }

  @inline(__always) var fields: FieldList { self.record.pointee.fields }

  /// How many of the fields are counted.
  @inline(__always) var countedCount: Int { self.record.pointee.countedCount }

  /// Whether there can be a required field in a message of this type, at any depth.
  @inline(__always) var containsRequired: Bool { self.record.pointee.containsRequired }

  /// Owned by the graph that owns this table; nil if the table is part of none.
  @inline(__always) var schema: MessageSchema? {
    self.record.pointee.schema?.takeUnretainedValue()
  }

  /// Completes the table while its graph is built, before others see it.
  func link(to schema: MessageSchema) {
    self.record.pointee.schema = Unmanaged.passUnretained(schema)
  }

  fileprivate func initialize(to record: Record) {
    self.record.initialize(to: record)
  }

  /// The full name of the type.
  var name: String { self.descriptor.fullName }

  /// The full name of a field, for errors.
  func name(of field: FieldSchema) -> String { self.descriptor.name(of: field.descriptor) }
}

/// The fields of a type of messages, by number.
///
/// Invariant: as for ``FieldSchema``; `start` is that of `count` records.
struct FieldList: RandomAccessCollection {
  private let start: UnsafeMutablePointer<FieldSchema.Record>
  let count: Int

  fileprivate init(start: UnsafeMutablePointer<FieldSchema.Record>, count: Int) {
    self.start = start
    self.count = count
  }

  @inline(__always) var startIndex: Int { 0 }
  @inline(__always) var endIndex: Int { self.count }

  @inline(__always)
  subscript(index: Int) -> FieldSchema {
    assert(index >= 0 && index < self.count)
    return FieldSchema(self.start + index)
  }

  /// The index of the field with this number.
  ///
  /// - Parameter next: Where to look first, as fields mostly come in their order.
  @inline(__always)
  func index(ofNumber number: UInt32, from next: Int = 0) -> Int? {
    if next < self.count, self[next].number == number { return next }
    if next + 1 < self.count, self[next + 1].number == number { return next + 1 }
    return self.search(number)
  }

  private func search(_ number: UInt32) -> Int? {
    var low = 0
    var high = self.count
    while low < high {
      let middle = (low + high) / 2
      let candidate = self[middle].number
      if candidate == number { return middle }
      if candidate < number { low = middle + 1 } else { high = middle }
    }
    return nil
  }
}

/// The tables of types of messages, each with all that it reaches.
final class MessageTables: Sendable {
  /// Those of protoc-c's structs, whose descriptors are constants.
  static let ofStructs = MessageTables()

  private struct State {
    let memory = DescriptorMemory()
    nonisolated(unsafe) var tables: [MessageDescriptorPointer: MessageTable] = [:]
  }

  private let state = Mutex(State())

  /// The table of a type, made if there is none yet. It is there as long as this object.
  func table(of descriptor: MessageDescriptorPointer) -> MessageTable {
    self.state.withLock { Self.table(of: descriptor, in: &$0) }
  }

  private static func table(of root: MessageDescriptorPointer, in state: inout State) -> MessageTable {
    if let table = state.tables[root] { return table }
    var new: [(descriptor: MessageDescriptorPointer, table: MessageTable)] = []
    var open = [root]
    while let descriptor = open.popLast() {
      if state.tables[descriptor] != nil { continue }
      // Initialised below, when the tables of the fields' types have their places.
      let table = MessageTable(state.memory.place(for: MessageTable.Record.self))
      state.tables[descriptor] = table
      new.append((descriptor, table))
      for field in descriptor.fieldPointers where field.pointee.kind == .message {
        if let inner = field.pointee.messageDescriptor { open.append(inner) }
      }
    }
    let withRequired = self.withRequired(new.map(\.descriptor), in: state)
    for (descriptor, table) in new {
      let fields = descriptor.fieldPointers.map { field in
        let inner = field.pointee.kind == .message ? field.pointee.messageDescriptor : nil
        return FieldSchema.Record(field, table: inner.flatMap { state.tables[$0] })
      }
      table.initialize(
        to: MessageTable.Record(
          descriptor: descriptor,
          size: descriptor.pointee.sizeof_message,
          emptyMessage: UnsafeRawPointer(state.memory.arena.newMessage(descriptor).address),
          fields: FieldList(
            start: state.memory.array(of: fields) ?? state.memory.place(for: FieldSchema.Record.self),
            count: fields.count
          ),
          countedCount: fields.count(where: \.isCounted),
          containsRequired: withRequired.contains(descriptor),
          schema: nil
        )
      )
    }
    return new[0].table
  }

  /// Those of `new` types that have a required field, or a type in them that has.
  private static func withRequired(
    _ new: [MessageDescriptorPointer],
    in state: State
  ) -> Set<MessageDescriptorPointer> {
    let isNew = Set(new)
    var owners = Owners<MessageDescriptorPointer>()
    var found: [MessageDescriptorPointer] = []
    for descriptor in new {
      for field in descriptor.fieldPointers {
        if field.pointee.label == PROTOBUF_C_LABEL_REQUIRED { found.append(descriptor) }
        guard field.pointee.kind == .message, let inner = field.pointee.messageDescriptor else { continue }
        if isNew.contains(inner) {
          owners.add(descriptor, of: inner)
        } else if state.tables[inner]?.containsRequired == true {
          found.append(descriptor)
        }
      }
    }
    return owners.reached(from: found)
  }
}
